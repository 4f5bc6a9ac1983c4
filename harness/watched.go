//go:build unix && !solaris && !illumos && !aix

package harness

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// startWatched starts a command with a watcher that kills it when this program dies, for systems without a parent-death signal.
func startWatched(cmd *exec.Cmd) (release func(), err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w, err := watch(cmd.Process.Pid)
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return nil, fmt.Errorf("start its watcher: %w", err)
	}
	return w.release, nil
}

// A watcher is a shell that reads from a pipe whose other end only this program holds, and kills when that is closed.
type watcher struct {
	shell *exec.Cmd
	hold  io.Closer
}

func watch(pid int) (*watcher, error) {
	shell := exec.Command("/bin/sh", "-c", `read _; kill -9 "$1"`, "sh", strconv.Itoa(pid))
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	hold, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	return &watcher{shell, hold}, err
}

// release ends the watcher. The pipe is closed last, so that it never signals a pid that may be another's by now.
func (w *watcher) release() {
	w.shell.Process.Kill()
	w.shell.Wait()
	w.hold.Close()
}
