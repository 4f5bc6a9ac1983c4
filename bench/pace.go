package bench

import "time"

// pacer blocks until the time is up. It may return early, never on purpose late; the caller looks at the clock again.
// It is always called from the same goroutine, locked to its thread.
type pacer func(wait time.Duration)

// The generator looks at its context at least this often.
const maxPace = 20 * time.Millisecond

func sleepPace(wait time.Duration) { time.Sleep(min(wait, maxPace)) }
