package proxy

import (
	"net/http"
	"time"
)

// Health is the answer of /health.
type Health struct {
	Status string        `json:"status"` // "ok", "degraded" while some shards are out, "down" while all are
	Shards []ShardHealth `json:"shards"`
}

// ShardHealth is whether a shard serves.
type ShardHealth struct {
	Name  string    `json:"name"`
	State string    `json:"state"` // "serving" or "out"
	Since time.Time `json:"since"` // when that began
}

// Health returns which shards serve. A shard does while its heartbeats, which write
// to it, succeed, and notices of its writes arrive.
func (p *Proxy) Health() Health {
	h := Health{Status: "down"}
	serving := 0
	for _, s := range p.watch.states() {
		h.Shards = append(h.Shards, ShardHealth{s.name, s.word(), s.since})
		if s.serving {
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
