//go:build unix && !linux

package acp

import "syscall"

// ownGroup starts a process group. Such a system has no signal for the end of a parent: a program reads the end of its input then.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
