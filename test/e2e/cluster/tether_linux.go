package cluster

import "syscall"

// tether makes a child a process group of its own that ends with the thread
// that starts it.
func tether() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
