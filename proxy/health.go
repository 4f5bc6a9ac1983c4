package proxy

import (
	"net/http"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

// Health is the answer of /health.
type Health struct {
	Status string        `json:"status"` // "ok", "degraded" while some shards are out, "down" while all are
	Shards []ShardHealth `json:"shards"`
}

// ShardHealth is whether a shard serves.
type ShardHealth struct {
	Name  string    `json:"name"`
	State string    `json:"state"`           // "serving", "out" while others stand in for it, or "returning"
	Since time.Time `json:"since"`           // when that began
	Error string    `json:"error,omitempty"` // why it is out
}

// Health returns which shards serve, as tiercache.Cache.Health has it.
func (p *Proxy) Health() Health {
	h := Health{Status: "down", Shards: p.shards()}
	serving := 0
	for _, s := range h.Shards {
		if s.State == tiercache.ShardServing.String() {
			serving++
		}
	}
	switch serving {
	case 0:
	case len(h.Shards):
		h.Status = "ok"
	default:
		h.Status = "degraded"
	}
	return h
}

func (p *Proxy) shards() []ShardHealth {
	var list []ShardHealth
	for _, s := range p.cache.Health() {
		h := ShardHealth{Name: s.Shard, State: s.State.String(), Since: s.Since}
		if h.Since.IsZero() {
			h.Since = p.watch.started
		}
		if s.State != tiercache.ShardServing && s.Err != nil {
			h.Error = oneLine(s.Err)
		}
		list = append(list, h)
	}
	return list
}

func (p *Proxy) health(w http.ResponseWriter, _ *http.Request) error {
	h := p.Health()
	status := http.StatusOK
	if h.Status == "down" || p.draining.Load() {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	if p.draining.Load() {
		h.Status = "draining"
	}
	answer(w, status, h)
	return nil
}

func (p *Proxy) live(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, map[string]string{"status": "live"})
	return nil
}
