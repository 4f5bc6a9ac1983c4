//go:build !linux

package bench

import "time"

// pace relies on the runtime's timers: the lateness in the result tells how good they are.
func pace(wait time.Duration) { sleepPace(wait) }

func sharpenTimers() {}
