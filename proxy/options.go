package proxy

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

// Options of a Proxy. The zero value, and a nil pointer, are usable.
type Options struct {
	// Cache is the cache's own choices. Codec and Shared are the proxy's. OnEvent nil
	// means that Log is told.
	Cache tiercache.Options

	// MaxBody bounds the body of a request, in bytes. 0 means 1 MiB.
	MaxBody int64

	// MaxKey bounds a key, in bytes. 0 means 8192.
	MaxKey int

	// MaxKeys bounds the keys of one mget. 0 means 256.
	MaxKeys int

	// MaxInFlight bounds the requests that use the cache at one time; more are 503. 0
	// means 1024.
	MaxInFlight int

	// Token, unless it is empty, is asked of every request but those for health:
	// as "Authorization: Bearer TOKEN" or, so that a browser can open the
	// dashboard, as the password of basic authentication with any name.
	Token string

	// Log is told of the cache's events, such as shards that go out and come back, and
	// of each request at level debug. nil means slog.Default.
	Log *slog.Logger
}

func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.Cache.Codec, opts.Cache.Shared = tiercache.JSON, true
	for _, limit := range []struct {
		name  string
		given int64
	}{{"MaxBody", opts.MaxBody}, {"MaxKey", int64(opts.MaxKey)}, {"MaxKeys", int64(opts.MaxKeys)}, {"MaxInFlight", int64(opts.MaxInFlight)}} {
		if limit.given < 0 {
			return opts, fmt.Errorf("proxy: %s is %d: want a number above zero, or 0 for the default", limit.name, limit.given)
		}
	}
	set(&opts.MaxBody, 1<<20)
	set(&opts.MaxKey, 8192)
	set(&opts.MaxKeys, 256)
	set(&opts.MaxInFlight, 1024)
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Cache.OnEvent == nil {
		opts.Cache.OnEvent = tiercache.LogEvents(opts.Log)
	}
	return opts, nil
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// maxTTL is the longest life that a request may ask for.
const maxTTL = 100 * 365 * 24 * time.Hour
