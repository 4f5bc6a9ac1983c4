//go:build !unix || solaris || illumos || aix

package harness

import (
	"context"
	"fmt"
	"runtime"
)

// Processes returns the provider that runs servers as processes of this machine. There is no Redis for this system, so it
// has none to offer: name servers by address instead.
func Processes() Provider { return processes{} }

type processes struct{}

func (processes) Open(context.Context, Options) (Launcher, error) {
	return nil, fmt.Errorf("harness: %w: servers cannot be run on %s: set SHARDKIT_CLUSTER or SHARDKIT_SHARDS to the addresses of some",
		ErrNoServer, runtime.GOOS)
}
