package harness

import (
	"os/exec"
	"syscall"
)

// startBound starts a command that the kernel kills when the calling thread dies. It survives the exec of a wrapper
// script into the real server. A process group of its own keeps a terminal's Ctrl-C from reaching servers that a program
// in the foreground wants to close itself.
func startBound(cmd *exec.Cmd) (release func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return func() {}, cmd.Start()
}
