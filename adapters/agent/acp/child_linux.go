package acp

import "syscall"

// ownGroup starts a process group. The process ends with the thread that has started it, and so with the daemon.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
