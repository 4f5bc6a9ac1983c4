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

// mapTruth maps a file of n versions into memory that processes share, until
// this one ends.
func mapTruth(path string, n int) ([]atomic.Uint64, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	defer f.Close()
	b, err := syscall.Mmap(int(f.Fd()), 0, 8*n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("soak: map %s: %w", path, err)
	}
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&b[0])), n), nil
}
