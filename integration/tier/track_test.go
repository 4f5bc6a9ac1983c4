package tier

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// inLocal reports whether a read of key is answered by L1, and reads it.
func inLocal[V any](t testing.TB, c *tiercache.Cache[V], key string) bool {
	t.Helper()
	before := c.Stats().LocalHits
	c.Get(t.Context(), key)
	return c.Stats().LocalHits > before
}

// TestForeignChanges: with Tracking, L1 sees what others than caches do to keys.
func TestForeignChanges(t *testing.T) {
	t.Parallel()
	command := func(cmd ...string) func(*testing.T, *harness.Node) {
		return func(t *testing.T, n *harness.Node) { _, err := n.Do(t.Context(), cmd...); ok(t, err) }
	}
	gone := func(t *testing.T, n *harness.Node) {
		within(t, time.Minute, "the key is gone", func() bool { v, err := n.Do(t.Context(), "EXISTS", "tc:k"); return err == nil && v == int64(0) })
	}
	changes := []struct {
		name   string
		args   []string
		before func(*testing.T, *harness.Node)
		change func(*testing.T, *harness.Node)
	}{
		{"DEL", nil, nil, command("DEL", "tc:k")},
		{"UNLINK", nil, nil, command("UNLINK", "tc:k")},
		{"SET", nil, nil, command("SET", "tc:k", "foreign")},
		{"RENAME", nil, nil, command("RENAME", "tc:k", "other")},
		{"FLUSHALL", nil, nil, command("FLUSHALL")},
		{"expiry", nil, command("PEXPIRE", "tc:k", "150"), gone},
		{"eviction", []string{"--maxmemory", "8mb", "--maxmemory-policy", "allkeys-random"}, nil, func(t *testing.T, n *harness.Node) {
			pad := strings.Repeat("x", 100_000)
			for i := 0; ; i++ {
				command("SET", fmt.Sprint("pad", i), pad)(t, n)
				if v, err := n.Do(t.Context(), "EXISTS", "tc:k"); err == nil && v == int64(0) {
					return
				}
			}
		}},
	}
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		for _, ch := range changes {
			t.Run(ch.name, func(t *testing.T) {
				t.Parallel()
				nodes := servers(t, 1, harness.Options{Args: ch.args})
				a := open[int](t, c, nodes, &tiercache.Options{Tracking: true})
				rounds := 3
				if long() {
					rounds = 25
				}
				var took []time.Duration
				for i := range rounds {
					synced(t, a)
					set := func() {
						mustSet(t, a, "k", i)
						if ch.before != nil {
							ch.before(t, nodes[0])
						}
					}
					set()
					within(t, time.Minute, "the value is in L1", func() bool {
						if inLocal(t, a, "k") {
							return true
						}
						if _, err := a.Get(t.Context(), "k"); errors.Is(err, tiercache.ErrNotFound) {
							set() // it expired before a busy machine read it
						}
						return false
					})
					ch.change(t, nodes[0])
					changed := time.Now()
					within(t, bound, "L1 has seen the change", func() bool { _, err := a.Get(t.Context(), "k"); return errors.Is(err, tiercache.ErrNotFound) })
					took = append(took, time.Since(changed))
				}
				slices.Sort(took)
				t.Logf("until L1 has seen it: p50 %v, max %v", took[rounds/2], took[rounds-1])
				// By a heartbeat, and not by what the server tells, it would take up to a second.
				if took[rounds-1] > 50*time.Millisecond && idle() {
					t.Errorf("got %v at worst, want 50 ms at most", took[rounds-1])
				}
				if took[rounds/2] > 250*time.Millisecond && long() {
					t.Errorf("got %v, want 250 ms at most", took[rounds/2])
				}
			})
		}
	})
}

// TestTrackingConnectionLost: what changes while nothing can be told is not read
// from L1 after the bound. Nor is anything after the connection's loss was seen.
func TestTrackingConnectionLost(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		for _, d := range disturbances {
			if strings.Contains(d.name, "swallowed") {
				continue // a connection loses no single announcement
			}
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				n := servers(t, 1, harness.Options{Proxied: true})[0]
				port, err := n.Do(t.Context(), "CONFIG", "GET", "port")
				ok(t, err)
				direct := c.shard(t, "127.0.0.1:"+port.([]any)[1].(string))
				opts := &tiercache.Options{Tracking: true, Heartbeat: 20 * time.Millisecond}
				a := open[int](t, c, []*harness.Node{n}, opts)
				last := lasts(t, 30*time.Second)
				for i, began := 0, time.Now(); i < 4 || time.Since(began) < last; i++ {
					synced(t, a)
					within(t, time.Minute, "a writes", func() bool { return a.Set(t.Context(), "k", i) == nil })
					within(t, time.Minute, "the value is in L1", func() bool { return inLocal(t, a, "k") })
					d.begin(t, n)
					_, err := direct.Do(t.Context(), []string{"DEL", "tc:k"})
					ok(t, err)
					deleted := time.Now()
					for time.Since(deleted) < 2*opts.Heartbeat {
						a.Get(t.Context(), "k")
						time.Sleep(opts.Heartbeat / 10)
					}
					if v, err := a.Get(t.Context(), "k"); err == nil {
						t.Errorf("round %d: got %d %v after it was deleted", i, v, time.Since(deleted))
					}
					d.end(t, n)
				}
			})
		}
	})
}

// TestTrackingRESP2: a connection that cannot be told anything is refused, and the
// cache works without L1.
func TestTrackingRESP2(t *testing.T) {
	n := servers(t, 1, harness.Options{})[0]
	dials := map[string]func() tiercache.Shard{
		"goredis": func() tiercache.Shard {
			client := redis.NewClient(&redis.Options{Addr: n.Addr(), Protocol: 2})
			t.Cleanup(func() { client.Close() })
			return goredis.NewShard(client)
		},
		"rueidis": func() tiercache.Shard {
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{n.Addr()}, ForceSingleClient: true, AlwaysRESP2: true, DisableCache: true})
			ok(t, err)
			t.Cleanup(client.Close)
			s, err := rueidisbackend.NewShard(client)
			ok(t, err)
			return s
		},
	}
	for name, dial := range dials {
		t.Run(name, func(t *testing.T) {
			heard := make(chan tiercache.Event, 10)
			c, err := tiercache.New[int](map[string]tiercache.Shard{"s": dial()}, &tiercache.Options{Tracking: true, OnEvent: func(e tiercache.Event) {
				select {
				case heard <- e:
				default:
				}
			}})
			ok(t, err)
			defer c.Close()
			select {
			case e := <-heard:
				if e.Kind != tiercache.EventLost || e.Err == nil || !strings.Contains(e.Err.Error(), "RESP2") {
					t.Errorf("got %+v, want EventLost with a reason that names RESP2", e)
				}
			case <-time.After(time.Minute):
				t.Error("no event tells that nothing can be tracked")
			}
			mustSet(t, c, "k", 1)
			first := inLocal(t, c, "k")
			if second := inLocal(t, c, "k"); first || second { // a read does not bring it there either
				t.Error("L1 holds values whose changes it does not hear of")
			}
		})
	}
}
