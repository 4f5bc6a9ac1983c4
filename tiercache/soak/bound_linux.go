package soak

import "syscall"

// bound has the kernel kill a process when the thread that started it ends.
func bound() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
