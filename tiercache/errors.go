package tiercache

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

var (
	// ErrNotFound means that the key has no value: none is cached, or the loader
	// said so. A loader returns it, or an error that wraps it, for what does not
	// exist; the cache remembers that for Options.NegativeTTL.
	ErrNotFound = errors.New("tiercache: not found")

	// ErrNotModified is for a Reloader to return: the value of before is right.
	ErrNotModified = errors.New("tiercache: not modified")

	// ErrUnavailable means that the shard failed so often of late that it is not
	// asked for a moment. Nothing was sent.
	ErrUnavailable = errors.New("shard unavailable")

	// ErrLate means that a write came to its shard after the deadline, and did
	// nothing there.
	ErrLate = errors.New("the write came after its deadline, and took no effect")

	// ErrTTL means that a life of zero or less was given.
	ErrTTL = errors.New("tiercache: a life must be above zero: leave TTL out for Options.TTL, or Delete the key")

	// ErrClosed means that the cache is closed.
	ErrClosed = errors.New("tiercache: closed")
)

// ShardError is the failure of one shard.
type ShardError struct {
	Shard string // its name
	Op    string // "get", "set", "delete", "load", "fill"
	Err   error
}

func (e *ShardError) Error() string {
	return fmt.Sprintf("tiercache: %s: shard %q: %s", e.Op, e.Shard, strings.TrimPrefix(e.Err.Error(), "tiercache: "))
}

func (e *ShardError) Unwrap() error { return e.Err }

// LoadError is the failure of a loader. A loader that panicked is a *PanicError
// within.
type LoadError struct{ Err error }

func (e *LoadError) Error() string { return "tiercache: load: " + e.Err.Error() }
func (e *LoadError) Unwrap() error { return e.Err }

// PanicError holds what a loader panicked with, and where.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack) }

// KeysError says which keys of an operation on many failed, and why. The other
// keys were served.
type KeysError struct {
	Op   string
	Errs map[string]error // by key
}

func (e *KeysError) Error() string {
	if len(e.Errs) == 0 {
		return "tiercache: " + e.Op + ": no key failed"
	}
	first := slices.Min(slices.Collect(maps.Keys(e.Errs)))
	return fmt.Sprintf("tiercache: %s: %d keys failed; %q: %s", e.Op, len(e.Errs), first, strings.TrimPrefix(e.Errs[first].Error(), "tiercache: "))
}

func (e *KeysError) Unwrap() []error { return slices.Collect(maps.Values(e.Errs)) }

func (e *KeysError) add(err error, keys ...string) {
	if e.Errs == nil {
		e.Errs = make(map[string]error)
	}
	for _, key := range keys {
		e.Errs[key] = err
	}
}

// orNil is e as an error, nil if no key failed.
func (e *KeysError) orNil() error {
	if len(e.Errs) == 0 {
		return nil
	}
	return e
}
