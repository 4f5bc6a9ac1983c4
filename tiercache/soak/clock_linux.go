package soak

import (
	"syscall"
	"unsafe"
)

const clockMonotonic = 1

// monotonic is the system's monotonic clock in ns, which all processes share.
func monotonic() int64 {
	var t syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		panic("soak: read the monotonic clock: " + errno.Error())
	}
	return t.Nano()
}
