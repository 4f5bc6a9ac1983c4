//go:build unix

package soak

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

func stop(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func cont(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// truthFile is where a process has the file of the source of truth.
const truthFile = 3

// mapTruth maps that file, of n versions, into memory that processes share until
// they end.
func mapTruth(n int) ([]atomic.Uint64, error) {
	b, err := syscall.Mmap(truthFile, 0, 8*n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("soak: map the source of truth: %w", err)
	}
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&b[0])), n), nil
}
