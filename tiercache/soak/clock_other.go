//go:build !linux

package soak

import "time"

var (
	began     = time.Now()
	startWall = began.UnixNano()
)

// monotonic is the wall clock as it was when the process began, moved on by its
// monotonic one: right as long as nobody sets the clock between two starts.
func monotonic() int64 { return startWall + int64(time.Since(began)) }
