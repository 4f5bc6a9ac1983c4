//go:build unix && !solaris && !illumos && !aix

package harness

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// What stands in for the parent-death signal on other systems works on this one too: the pipe that closes is all that the
// watcher knows of its parent's death.
func TestWatcherKills(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "60")
	release, err := startWatched(cmd)
	if err != nil {
		t.Fatal(err)
	}
	release() // as if the server had ended: it must be left alone
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("after the watcher is released the process is gone: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()

	cmd = exec.Command("/bin/sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w, err := watch(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	w.hold.Close() // as if this program had died
	cmd.Wait()
	if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGKILL {
		t.Errorf("the process ended by %v, want SIGKILL", got)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("it took %v", d)
	}
	w.release()
}
