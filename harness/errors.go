package harness

import (
	"errors"
	"strings"
)

// Errors for callers to branch on, with errors.Is.
var (
	// ErrNoServer: nothing to run a server with was found. The error itself is often a *NoServerError.
	ErrNoServer = errors.New("no server")

	// ErrUnsupported: this fault or request cannot be had from the servers in use.
	ErrUnsupported = errors.New("unsupported")

	// ErrAddrInUse: a server could not listen on its port. A Provider wraps it, so that the whole start is
	// tried again on other ports.
	ErrAddrInUse = errors.New("address in use")
)

// A NoServerError says that no server was found on this machine.
type NoServerError struct {
	Looked  []string // the names and places tried, in order
	Install string   // the one command that installs a server on this system, or advice where none is known
}

func (e *NoServerError) Error() string {
	return "harness: no redis-server or valkey-server found (looked for " + strings.Join(e.Looked, ", ") +
		"): run `" + e.Install + "`, or set SHARDKIT_SERVER to a binary, or SHARDKIT_CLUSTER or SHARDKIT_SHARDS to addresses"
}

// Is makes errors.Is(err, ErrNoServer) true.
func (e *NoServerError) Is(target error) bool { return target == ErrNoServer }
