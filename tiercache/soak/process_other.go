//go:build !unix

package soak

import (
	"errors"
	"os"
	"sync/atomic"
)

var errSystem = errors.New("soak: processes are stopped, and share memory, on Unix systems alone")

func stop(*os.Process) error { return errSystem }
func cont(*os.Process) error { return errSystem }

func mapTruth(int) ([]atomic.Uint64, error) { return nil, errSystem }
