package bench

import (
	"syscall"
	"time"
)

// The kernel may deliver a timer late by the thread's slack, 50 µs by default. With a slack of 1 ns a sleep ends about
// 8 µs late, the time a thread takes to wake up; spinning that long hides it and costs a tenth of a core at most.
// Spinning longer takes CPU from the servers on small machines, for nothing in the tail.
const spin = 10 * time.Microsecond

// pace sleeps without the Go scheduler's timers, which are late by 0.5 ms on an idle machine.
func pace(wait time.Duration) {
	if wait <= spin {
		return
	}
	ts := syscall.NsecToTimespec(int64(min(wait-spin, maxPace)))
	// A signal ends the sleep early, which is fine.
	_ = syscall.Nanosleep(&ts, nil)
}

// sharpenTimers acts on the calling thread, which must not go back to other goroutines.
func sharpenTimers() {
	const prSetTimerSlack = 29
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0)
}
