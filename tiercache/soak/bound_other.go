//go:build !linux

package soak

import "syscall"

// bound leaves it to the process to end when its standard input does, which one
// that is stopped at that moment cannot.
func bound() *syscall.SysProcAttr { return nil }
