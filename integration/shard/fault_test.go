package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// late is how long after its deadline a call may return on a busy machine: less
// than the clients' own time-outs, of which the shortest is 3 s.
const late = 2500 * time.Millisecond

// Every call on a frozen server returns by its deadline: one at a time, and more
// at once than a client's queue holds. Once the server is back they work.
func TestFrozenServer(t *testing.T) {
	n := server(t, harness.Options{})
	eachClient(t, n.Addr(), func(t *testing.T, s tiercache.Shard) {
		for range 3 { // it has a connection, and has been well
			must(t, s, "SET", "frozen", "v")
		}
		freeze(t, n)
		cmds := [][]string{{"GET", "frozen"}, {"SET", "frozen", "w"}}
		call := func(way int) error {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			start := time.Now()
			var err error
			switch way % 3 {
			case 0:
				_, err = s.Do(ctx, cmds[0])
			case 1:
				err, _ = s.Pipeline(ctx, cmds)[1].(error)
			case 2:
				_, err = s.Tx(ctx, cmds)
			}
			if took := time.Since(start); took > 200*time.Millisecond+late {
				return fmt.Errorf("returned after %v: %w", took, err)
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("got %v, want an error that wraps %v", err, context.DeadlineExceeded)
			}
			return nil
		}
		var wg sync.WaitGroup
		for i := range 200 { // the first to notice, whose deadlines differ
			wg.Go(func() {
				limit := time.Duration(50+i) * time.Millisecond
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				start := time.Now()
				if v, err := s.Do(ctx, cmds[0]); err == nil || time.Since(start) > limit+late {
					t.Errorf("with %v to go: %v, %v after %v", limit, v, err, time.Since(start))
				}
			})
		}
		wg.Wait()
		for way := range 3 {
			if err := call(way); err != nil {
				t.Errorf("%s: %v", []string{"Do", "Pipeline", "Tx"}[way], err)
			}
		}
		const atOnce = 3000
		failed := make(chan error, atOnce)
		for i := range atOnce {
			wg.Go(func() {
				if err := call(i); err != nil {
					failed <- err
				}
			})
		}
		wg.Wait()
		close(failed)
		if err := <-failed; err != nil {
			t.Errorf("%d calls at once: %d failed, first: %v", atOnce, len(failed)+1, err)
		}
		if err := n.Thaw(); err != nil {
			t.Fatal(err)
		}
		within(t, time.Minute, "the shard answers again", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			v, err := s.Do(ctx, []string{"ECHO", "hello"})
			return err == nil && v == "hello"
		})
	})
}

// A command whose answer does not come is not sent again, whatever the client's
// options. The client itself sends it again, which shows that the test can fail.
func TestNothingIsSentTwice(t *testing.T) {
	n := server(t, harness.Options{Proxied: true})
	goRedis := redis.NewClient(&redis.Options{
		Addr: n.Addr(), MaxRetries: 3, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 2 * time.Millisecond,
		ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond, DialTimeout: 100 * time.Millisecond,
	})
	defer goRedis.Close()
	rueidisClient, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{n.Addr()}, ForceSingleClient: true, ConnWriteTimeout: 100 * time.Millisecond,
		RetryDelay: func(int, rueidis.Completed, error) time.Duration { return time.Millisecond },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rueidisClient.Close()
	rueidisShard, err := rueidisbackend.NewShard(rueidisClient)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		shard  tiercache.Shard
		itself func(ctx context.Context, key string)
	}{
		{"goredis", goredis.NewShard(goRedis), func(ctx context.Context, key string) { goRedis.Incr(ctx, key) }},
		{"rueidis", rueidisShard, func(ctx context.Context, key string) {
			// Marked as what rueidis repeats.
			rueidisClient.Do(ctx, rueidisClient.B().Arbitrary("INCR", key).ReadOnly())
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			count := func(name string, incr func(ctx context.Context, key string)) any {
				t.Helper()
				key := t.Name() + name
				must(t, c.shard, "SET", key, "0")
				if err := n.Swallow(isCount); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				incr(ctx, key)
				cancel()
				if err := n.Mend(); err != nil {
					t.Fatal(err)
				}
				v, err := n.Do(soon(t), "GET", key)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			for name, incr := range map[string]func(ctx context.Context, key string){
				"Do":       func(ctx context.Context, key string) { c.shard.Do(ctx, []string{"INCR", key}) },
				"Pipeline": func(ctx context.Context, key string) { c.shard.Pipeline(ctx, [][]string{{"INCR", key}}) },
				"Tx":       func(ctx context.Context, key string) { c.shard.Tx(ctx, [][]string{{"INCR", key}}) },
			} {
				if v := count(name, incr); v != "1" {
					t.Errorf("%s: INCR was done %v times, want once", name, v)
				}
			}
			if v := count("itself", c.itself); v == "0" || v == "1" {
				t.Errorf("the client itself did INCR %v times, want more: this test cannot show a second sending", v)
			}
		})
	}
}

// isCount matches the answer to INCR, alone or in EXEC's.
func isCount(message []byte) bool {
	return bytes.HasPrefix(message, []byte(":")) || bytes.HasPrefix(message, []byte("*1\r\n:"))
}

// Where MULTI is refused no command of a Tx runs.
func TestTxWithoutMulti(t *testing.T) {
	n := server(t, harness.Options{})
	if _, err := n.Do(t.Context(), "ACL", "SETUSER", "default", "-multi"); err != nil {
		t.Fatal(err)
	}
	eachClient(t, n.Addr(), func(t *testing.T, s tiercache.Shard) {
		list, err := s.Tx(soon(t), [][]string{{"SET", t.Name(), "v"}, {"NOSUCHCOMMAND"}})
		if err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("got %v, %v, want NOPERM", list, err)
		}
		if v := must(t, s, "EXISTS", t.Name()); v != int64(0) {
			t.Error("a command of the refused Tx ran")
		}
	})
}

// The caller's client keeps its own options.
func TestClientIsLeftAsItWas(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	before := *client.Options()
	goredis.NewShard(client)
	after := *client.Options()
	if before.MaxRetries == 0 || after.MaxRetries != before.MaxRetries || after.ContextTimeoutEnabled || after.WriteTimeout != before.WriteTimeout {
		t.Errorf("MaxRetries %d and ContextTimeoutEnabled %v, before NewShard %d and false", after.MaxRetries, after.ContextTimeoutEnabled, before.MaxRetries)
	}
}

// After a restart the next calls work, as soon as the server does.
func TestRestartedServer(t *testing.T) {
	n := server(t, harness.Options{})
	eachClient(t, n.Addr(), func(t *testing.T, s tiercache.Shard) {
		must(t, s, "SET", "k", "v")
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		start := time.Now()
		_, err := s.Do(ctx, []string{"GET", "k"})
		cancel()
		if err == nil || time.Since(start) > time.Second+late {
			t.Errorf("on a killed server: %v after %v", err, time.Since(start))
		}
		if err := n.Restart(soon(t), harness.Empty); err != nil {
			t.Fatal(err)
		}
		within(t, time.Minute, "the shard answers again", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			v, err := s.Do(ctx, []string{"EXISTS", "k"})
			return err == nil && v == int64(0)
		})
	})
}

// A connection that takes longer to make than any caller waits is there in the
// end. go-redis has each caller make his own.
func TestSlowDial(t *testing.T) {
	n := server(t, harness.Options{Proxied: true})
	for _, c := range clients[2:] {
		t.Run(c.name, func(t *testing.T) {
			s := c.open(t, n.Addr())
			must(t, s, "SET", "k", "v")
			if err := errors.Join(n.Cut(), n.Mend(), n.Slow(100*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			defer n.Mend()
			within(t, time.Minute, "an answer", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // one round trip, not two
				defer cancel()
				_, err := s.Do(ctx, []string{"GET", "k"})
				return err == nil
			})
		})
	}
}

func must(t *testing.T, s tiercache.Shard, cmd ...string) any {
	t.Helper()
	v, err := s.Do(soon(t), cmd)
	if err != nil {
		t.Fatalf("%q: %v", cmd, err)
	}
	return v
}

// freeze stops the server until the test thaws it, or ends.
func freeze(t *testing.T, n *harness.Node) {
	t.Helper()
	if err := n.Freeze(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Thaw() })
}

func within(t *testing.T, d time.Duration, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(d); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", d, what)
		}
	}
}
