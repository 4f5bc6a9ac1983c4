package program

import (
	"os/exec"
	"syscall"
)

const bound = true

// bind has the kernel send SIGTERM when the thread ends that starts the command. Not SIGKILL: one that has something to take
// back sees the end of its input, too, and may ignore the signal.
func bind(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
}
