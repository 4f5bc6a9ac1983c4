package proxy

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/shardkit/shardkit/tiercache"
)

// Proxy serves a cache over HTTP.
type Proxy struct {
	opts    Options
	cache   *tiercache.Cache[Value]
	token   [sha256.Size]byte
	slots   chan struct{} // one for each request that uses the cache
	origin  *http.CrossOriginProtection
	metrics *metrics
	watch   *watch
	page    *page

	draining atomic.Bool

	stop context.CancelFunc
	wg   sync.WaitGroup
}

// New returns a proxy over the shards, which stay the caller's to close. See
// tiercache.New for their names. opts may be nil.
func New(shards map[string]tiercache.Shard, opts *Options) (*Proxy, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	cache, err := tiercache.New[Value](shards, &o.Cache)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		opts: o, cache: cache, token: sha256.Sum256([]byte(o.Token)),
		slots:  make(chan struct{}, o.MaxInFlight),
		origin: http.NewCrossOriginProtection(),
	}
	p.watch = newWatch(cache.Stats(), cache.Ring())
	p.metrics = newMetrics(p)
	p.page = newPage(p)
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.wg.Go(func() { p.watch.run(ctx, p) })
	return p, nil
}

// Close ends the proxy's cache. Requests after it are 503.
func (p *Proxy) Close() error {
	p.stop()
	p.wg.Wait()
	return p.cache.Close()
}

// Owner returns the name of the shard that has the key.
func (p *Proxy) Owner(key string) string { return p.cache.Ring().Locate(key) }

// A route is what a request is for.
type route struct {
	name    string
	methods []string
	open    bool // no token is asked for
	serve   func(p *Proxy, w http.ResponseWriter, r *http.Request) error
}

var (
	post = []string{"POST"}
	look = []string{"GET", "HEAD"}

	cacheRoutes = map[string]route{
		http.MethodGet:    {name: "cache", serve: (*Proxy).get},
		http.MethodHead:   {name: "cache", serve: (*Proxy).get},
		http.MethodPut:    {name: "cache", serve: (*Proxy).put},
		http.MethodDelete: {name: "cache", serve: (*Proxy).delete},
	}
	routes = map[string]route{
		"/mget":        {name: "mget", methods: post, serve: (*Proxy).mget},
		"/metrics":     {name: "metrics", methods: look, serve: (*Proxy).serveMetrics},
		"/health":      {name: "health", methods: look, open: true, serve: (*Proxy).health},
		"/health/live": {name: "health", methods: look, open: true, serve: (*Proxy).live},
		"/":            {name: "dashboard", methods: look, serve: (*Proxy).dashboard},
		"/dashboard/":  {name: "dashboard", methods: look, serve: (*Proxy).dashboard},
	}
)

const cachePrefix = "/cache/"

// find returns the route of a request, by hand: http.ServeMux would redirect keys
// that hold two slashes in a row, or dots between them.
func find(r *http.Request) (route, error) {
	path := r.URL.EscapedPath()
	if strings.HasPrefix(path, cachePrefix) {
		at, ok := cacheRoutes[r.Method]
		if !ok {
			return route{name: "cache", methods: []string{"DELETE", "GET", "HEAD", "PUT"}}, fail(http.StatusMethodNotAllowed, "%s is not for keys: use GET, PUT or DELETE", r.Method)
		}
		return at, nil
	}
	if strings.HasPrefix(path, "/dashboard/") {
		path = "/dashboard/"
	}
	at, ok := routes[path]
	switch {
	case !ok:
		return route{name: "none"}, fail(http.StatusNotFound, "no such path: there are /cache/KEY, /mget, /metrics, /health, /health/live and /")
	case !slices.Contains(at.methods, r.Method):
		return at, fail(http.StatusMethodNotAllowed, "%s is not for %s: use %s", r.Method, path, at.methods[0])
	}
	return at, nil
}

// ServeHTTP answers one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	r.Body = http.MaxBytesReader(w, r.Body, p.opts.MaxBody) // by w itself: it closes a connection that sends more
	rec := &recorder{ResponseWriter: w}
	rec.Header().Set("X-Content-Type-Options", "nosniff")
	rec.Header().Set("Cache-Control", "no-cache")
	at, err := find(r)
	if err == nil || at.methods != nil {
		err = p.admit(rec, r, at, err)
	}
	if err == nil {
		err = at.serve(p, rec, r)
	}
	if err != nil {
		f := failureOf(r.Context(), err)
		if f.status == http.StatusMethodNotAllowed {
			rec.Header().Set("Allow", strings.Join(at.methods, ", "))
		}
		f.write(rec)
	}
	took := time.Since(start)
	p.metrics.observe(at.name, r.Method, rec.status, took)
	p.opts.Log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "status", rec.status, "took", took)
}

// admit asks who is there, and then returns what is wrong with the request besides.
func (p *Proxy) admit(w http.ResponseWriter, r *http.Request, at route, wrong error) error {
	if p.opts.Token != "" && !at.open && !p.knows(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="shardkit", charset="UTF-8"`)
		return fail(http.StatusUnauthorized, "a token is asked for: send Authorization: Bearer TOKEN")
	}
	if wrong == nil && p.origin.Check(r) != nil {
		return fail(http.StatusForbidden, "a page of another site may not do this")
	}
	return wrong
}

func (p *Proxy) knows(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, given, ok = r.BasicAuth()
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(given)))
	return subtle.ConstantTimeCompare(sum[:], p.token[:]) == 1 && ok
}

// enter takes a slot, which leave gives back.
func (p *Proxy) enter() error {
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
		p.metrics.rejected.Inc()
		return fail(http.StatusServiceUnavailable, "%d requests are under way, which is the limit", cap(p.slots))
	}
}

func (p *Proxy) leave() { <-p.slots }

// key is the key that a request's path names.
func (p *Proxy) key(r *http.Request) (string, error) {
	key, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), cachePrefix))
	if err != nil {
		return "", fail(http.StatusBadRequest, "the key is not percent-encoded: %v", err)
	}
	return key, p.checkKey(key)
}

func (p *Proxy) checkKey(key string) error {
	switch {
	case key == "":
		return fail(http.StatusBadRequest, "the key is empty")
	case len(key) > p.opts.MaxKey:
		return fail(http.StatusRequestURITooLong, "the key has %d bytes, of at most %d", len(key), p.opts.MaxKey)
	case !utf8.ValidString(key):
		return fail(http.StatusBadRequest, "the key is not UTF-8")
	}
	return nil
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
