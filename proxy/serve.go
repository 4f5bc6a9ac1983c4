package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Time-outs of Serve.
const (
	headerTimeout = 5 * time.Second  // to send a request's header
	readTimeout   = 15 * time.Second // and all of it
	writeTimeout  = 30 * time.Second // to take the answer
	idleTimeout   = 2 * time.Minute  // between requests of a connection

	// maxHeader leaves room for a key of 8 KiB, percent-encoded.
	maxHeader = 64 << 10
)

// DrainTime is how long Serve waits for the requests under way when it is told to
// stop.
const DrainTime = 10 * time.Second

// Serve serves the listener until ctx ends. Then it takes no new connections,
// says so on /health, lets the requests under way finish, for DrainTime at
// most, and returns nil if all did. It closes the listener, and not the proxy.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(p.opts.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	p.draining.Store(true)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTime)
	defer cancel()
	err := server.Shutdown(drain)
	if err != nil {
		err = errors.Join(errors.New("proxy: some requests were still under way when the time to drain was over"), server.Close())
	}
	<-ended
	return err
}
