//go:build unix && !solaris && !illumos && !aix

package harness

import (
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
)

// startWatched starts a command with a shell that kills it when this program dies: the shell reads from a pipe whose other
// end only this program holds. It is for systems without a parent-death signal.
func startWatched(cmd *exec.Cmd) (release func(), err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	watch := exec.Command("/bin/sh", "-c", `read _; kill -9 "$1"`, "sh", strconv.Itoa(cmd.Process.Pid))
	watch.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	hold, err := watch.StdinPipe()
	if err == nil {
		err = watch.Start()
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return nil, fmt.Errorf("start its watcher: %w", err)
	}
	return func() {
		// Killed before the pipe is closed, so that it never signals a pid that may be another's by now.
		watch.Process.Kill()
		watch.Wait()
		hold.Close()
	}, nil
}
