//go:build unix && !linux && !solaris && !illumos && !aix

package harness

import (
	"os/exec"
	"syscall"
)

func startBound(cmd *exec.Cmd) (release func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return startWatched(cmd)
}
