//go:build unix && !solaris && !illumos && !aix

package harness

import (
	"os/exec"
	"runtime"
)

// A thread starts processes from one operating system thread, which lives until end. The kernel sends the parent-death
// signal when the *thread* that started the child dies, and the Go runtime ends threads as it likes, so servers must come
// from one that it cannot end.
type thread struct {
	work chan func()
	done chan struct{}
}

func newThread() *thread {
	t := &thread{work: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range t.work {
			f()
		}
	}()
	return t
}

// start starts the command, so that it dies with this program. release is to be called when the command has ended.
func (t *thread) start(cmd *exec.Cmd) (release func(), err error) {
	started := make(chan struct{})
	t.work <- func() {
		defer close(started)
		release, err = startBound(cmd)
	}
	<-started
	return release, err
}

// end lets the thread go. Every process started must have ended: the signal would reach it.
func (t *thread) end() {
	close(t.work)
	<-t.done
}
