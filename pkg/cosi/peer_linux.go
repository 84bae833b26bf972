package cosi

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

// peer names the process at the other end of a connection.
func peer(c net.Conn) string {
	const unknown = "another process"
	u, ok := c.(*net.UnixConn)
	if !ok {
		return unknown
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return unknown
	}
	var cred *syscall.Ucred
	if err := raw.Control(func(fd uintptr) {
		cred, _ = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil || cred == nil || cred.Pid <= 0 {
		return unknown // a process of another container has no number here
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cred.Pid))
	if err != nil {
		return fmt.Sprintf("process %d", cred.Pid)
	}
	return fmt.Sprintf("process %d (%s)", cred.Pid, strings.TrimSpace(string(name)))
}
