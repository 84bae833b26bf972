//go:build !linux

package cluster

import "syscall"

// tether makes a child a process group of its own. Only Linux ends it together
// with its parent.
func tether() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
