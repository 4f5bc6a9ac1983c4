//go:build !linux

package bench

func runRealTime() bool { return false }
