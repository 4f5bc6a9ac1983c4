package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/tiercachetest"
)

// shardRuleCases are tiercachetest's rules: what tiercache.Shard says of each method, over a server that is well.
func shardRuleCases() []Case {
	var cases []Case
	for _, rule := range tiercachetest.Rules() {
		c := Case{
			ID: rule.ID, Name: rule.Name, Requirement: rule.Text,
			Profile: Tiercache, Level: Core, Tier: Contract,
			Run: func(t *T) {
				s := t.Shard()
				if _, ok := s.(tiercache.Tracker); !ok && strings.HasPrefix(rule.Name, "track-") {
					t.Fatalf("the target promises %s, and the shard is no tiercache.Tracker", Tracker)
				}
				if _, ok := s.(tiercache.Dedicator); !ok && strings.HasPrefix(rule.Name, "dedicate-") {
					t.Fatalf("the target promises %s, and the shard is no tiercache.Dedicator", Dedicator)
				}
				err := rule.Check(t.Context(), s, t.Prefix())
				var na *tiercachetest.NotApplicable
				switch {
				case errors.As(err, &na):
					t.Unavailable("%v", na)
				case err != nil:
					t.Error(err)
				}
			},
		}
		switch {
		case strings.HasPrefix(rule.Name, "track-"):
			c.Level, c.Features = Extended, []Feature{Tracker}
		case strings.HasPrefix(rule.Name, "dedicate-"):
			c.Level, c.Features = Extended, []Feature{Dedicator}
		}
		cases = append(cases, c)
	}
	return cases
}

var shardCases = []Case{
	{
		ID: "TS-101", Name: "write-is-seen", Profile: Tiercache, Level: Core, Tier: Live,
		Requirement: "what one cache writes, another that holds the key's old value in its process gives at the next notice, long before a heartbeat could tell it",
		Run:         writeIsSeen,
	},
	{
		ID: "TS-102", Name: "killed-subscription", Profile: Tiercache, Level: Core, Tier: Live,
		Requirement: "a cache whose subscription was killed notices, gives no value that was overwritten two heartbeats ago, and subscribes again",
		Run:         killedSubscription,
	},
	{
		ID: "TS-201", Name: "sent-once", Profile: Tiercache, Level: Core, Tier: Fault,
		Requirement: "a command that a silent server has not answered is not sent again, whatever the client does by itself: it takes effect once at most",
		Run:         sentOnce,
	},
}

// cache returns a cache of the case's own over a new client.
func (t *T) cache(heartbeat time.Duration) *tiercache.Cache[string] {
	// A namespace holds no colon.
	namespace := strings.Map(func(r rune) rune {
		if strings.ContainsRune(":# \r\n\t", r) {
			return '.'
		}
		return r
	}, strings.TrimSuffix(t.Prefix(), ":"))
	t.suite.shard.prefixes = append(t.suite.shard.prefixes, namespace+":", namespace+"#")
	c, err := tiercache.New[string](map[string]tiercache.Shard{"shard": t.ConnectShard(t.Scale(3 * time.Second))}, &tiercache.Options{
		Namespace: namespace, Heartbeat: heartbeat, Timeout: t.Scale(3 * time.Second), // long enough for a machine that stalls
	})
	if err != nil {
		t.Broken("%v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	t.Eventually(5*time.Second, "the cache trusts what it hears from its shard", func() bool { return c.Stats().Shards[0].Synced })
	return c
}

// set writes, and ends the case where that fails.
func (t *T) set(c *tiercache.Cache[string], value string) {
	if err := c.Set(t.ctx, "key", value); err != nil {
		t.Fatalf("Set: %v", err)
	}
}

func (t *T) get(c *tiercache.Cache[string]) string {
	v, err := c.Get(t.ctx, "key")
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return v
}

// hold has the cache hold the key's value in its process.
func (t *T) hold(c *tiercache.Cache[string], value string) {
	t.Eventually(5*time.Second, "the value is answered from the process", func() bool {
		before := c.Stats().LocalHits
		return t.get(c) == value && c.Stats().LocalHits > before
	})
}

func writeIsSeen(t *T) {
	const heartbeat = time.Minute
	writer, reader := t.cache(heartbeat), t.cache(heartbeat)
	for i := range 50 {
		value := fmt.Sprint("value ", i)
		t.set(writer, value)
		t.Eventually(4*time.Second, fmt.Sprintf("the other cache gives %q", value), func() bool { return t.get(reader) == value })
		t.hold(reader, value)
	}
}

func killedSubscription(t *T) {
	heartbeat := t.Scale(250 * time.Millisecond)
	writer, before := t.cache(heartbeat), subscribers(t)
	reader := t.cache(heartbeat)
	for round := range 5 {
		fresh, stale := fmt.Sprint("fresh ", round), fmt.Sprint("stale ", round)
		t.set(writer, stale)
		t.hold(reader, stale)
		lost := reader.Stats().Shards[0].Lost
		now := subscribers(t)
		for id := range before {
			delete(now, id)
		}
		if len(now) != 1 {
			t.Unavailable("other clients subscribe here at the same time")
		}
		for id := range now {
			if _, err := t.Shard().Do(t.ctx, []string{"CLIENT", "KILL", "ID", id}); err != nil {
				t.Fatalf("CLIENT KILL: %v", err)
			}
		}
		t.set(writer, fresh)
		written := time.Now()
		t.Eventually(2*heartbeat+5*time.Second, "the cache notices the loss, and subscribes again", func() bool {
			began := time.Now()
			if v := t.get(reader); v != fresh && began.Sub(written) > 2*heartbeat {
				t.Fatalf("%v after it was overwritten the old value was given; two heartbeats are %v", began.Sub(written), 2*heartbeat)
			}
			s := reader.Stats().Shards[0]
			return s.Lost > lost && s.Synced
		})
		t.hold(reader, fresh)
	}
}

// subscribers returns the ids of the connections that are subscribed.
func subscribers(t *T) map[string]bool {
	v, err := t.Shard().Do(t.ctx, []string{"CLIENT", "LIST", "TYPE", "pubsub"})
	if err != nil {
		t.Unavailable("CLIENT LIST is not to be had here: %v", err)
	}
	ids := map[string]bool{}
	text, _ := v.(string)
	for line := range strings.Lines(text) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		ids[id] = true
	}
	return ids
}

func sentOnce(t *T) {
	server := t.ShardServer()
	const patience = 200 * time.Millisecond
	for _, way := range []struct {
		name string
		run  func(ctx context.Context, s tiercache.Shard, cmd []string)
	}{
		{"Do", func(ctx context.Context, s tiercache.Shard, cmd []string) { _, _ = s.Do(ctx, cmd) }},
		{"Pipeline", func(ctx context.Context, s tiercache.Shard, cmd []string) { s.Pipeline(ctx, [][]string{cmd}) }},
		{"Tx", func(ctx context.Context, s tiercache.Shard, cmd []string) { _, _ = s.Tx(ctx, [][]string{cmd}) }},
	} {
		key := t.Prefix() + way.name
		s := t.ConnectShard(patience)
		_, err := server.Do(t.ctx, "SET", key, "0") // a client of such patience may fail to, and do it later
		t.Need(err)
		way.run(t.ctx, s, []string{"GET", key}) // it has a connection, but on a machine that stalls
		t.Need(server.Freeze())
		ctx, cancel := context.WithTimeout(t.ctx, t.Scale(3*time.Second))
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			way.run(ctx, s, []string{"INCR", key})
		}()
		// Frozen until the client's patience is over, and no longer: what it sends then is answered.
		select {
		case <-returned:
		case <-time.After(2 * patience):
		}
		t.Need(server.Thaw())
		<-returned
		cancel()
		// A client that sends again behind its caller's back does it within its own time-outs.
		end := time.Now().Add(t.Scale(5 * patience))
		t.Eventually(time.Minute, "the count is watched", func() bool {
			v, err := server.Do(t.ctx, "GET", key)
			if err != nil {
				t.Broken("%v", err)
			}
			if v != "0" && v != "1" {
				t.Fatalf("%s: one INCR, sent to a server that was silent for a while, has counted to %v", way.name, v)
			}
			return time.Now().After(end)
		})
	}
}
