package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/harness"
)

// A write that was given up waiting for, by whatever clock, lands once when the
// node comes back, and never twice.
func TestTimedOutWriteIsNotSentAgain(t *testing.T) {
	c := sharedCluster(t)
	node, _ := masters(t, c, 0)
	for _, clock := range []struct {
		name string
		ctx  time.Duration // the caller's
		conn time.Duration // the connection's
	}{
		{"context", 200 * time.Millisecond, 0},
		{"connection", 0, 300 * time.Millisecond},
	} {
		for _, w := range ways {
			for _, busy := range []bool{false, true} { // rueidis writes itself, or by its background goroutine
				t.Run(fmt.Sprint(clock.name, "/", w.name, "/busy=", busy), func(t *testing.T) {
					b := connect(t, c, func(o *rueidis.ClientOption) {
						o.ConnWriteTimeout = clock.conn
						o.Dialer.KeepAlive = 200 * time.Millisecond // how often the background goroutine looks
						o.AlwaysPipelining = busy
					})
					key := keyIn(b, 0, t.Name())
					if _, err := w.run(t.Context(), b, key, "DEL", key); err != nil {
						t.Fatal(err)
					}
					thaw := freeze(t, node)
					ctx, cancel := context.WithCancel(t.Context())
					if clock.ctx != 0 {
						ctx, cancel = context.WithTimeout(ctx, clock.ctx)
					}
					_, err := w.run(ctx, b, key, "INCR", key)
					cancel()
					thaw()
					if err == nil {
						t.Fatal("INCR on a frozen node succeeded")
					}
					if ended := errors.Is(err, context.DeadlineExceeded); ended != (clock.ctx != 0) {
						t.Errorf("the error is %v", err)
					}
					eventually(t, "the write lands", func() bool { return tell(t, node, "GET", key) != nil })
					// What was sent while the node was frozen lay in its sockets
					// then, and it serves each of them before a later connection twice.
					for range 3 {
						tell(t, node, "PING")
					}
					if v := tell(t, node, "GET", key); v != "1" {
						t.Errorf("INCR took effect %v times", v)
					}
				})
			}
		}
	}
}

// The end of a context is noticed at once by each method, also where rueidis
// does not look at it: a cancellation before a deadline, and a connection whose
// queue is full.
func TestCancellationIsPrompt(t *testing.T) {
	c := sharedCluster(t)
	node, _ := masters(t, c, 0)
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			b := connect(t, c, func(o *rueidis.ClientOption) { o.RingScaleEachConn = 4 })
			key := keyIn(b, 0, "prompt")
			if _, err := w.run(t.Context(), b, key, "EXISTS", key); err != nil {
				t.Fatal(err)
			}
			freeze(t, node)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			started := make(chan struct{}, 64) // four times the queue
			var calls sync.WaitGroup
			for range cap(started) {
				calls.Go(func() {
					started <- struct{}{}
					if _, err := w.run(ctx, b, key, "GET", key); !errors.Is(err, context.Canceled) {
						t.Errorf("the error is %v, want one that wraps context.Canceled", err)
					}
				})
			}
			for range cap(started) {
				<-started
			}
			cancelled := time.Now()
			cancel()
			calls.Wait()
			if took := time.Since(cancelled); took > 5*time.Second { // 10 s by the client's own time-out
				t.Errorf("the calls returned %v after the cancellation", took)
			}
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			start := time.Now()
			if _, err := w.run(short, b, key, "GET", key); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v, want one that wraps context.DeadlineExceeded", err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("returned after %v, 100ms were allowed", took)
			}
		})
	}
}

// One caller's deadline does not cost another caller his reply, though both
// share a connection.
func TestDeadlineHarmsNobodyElse(t *testing.T) {
	c := sharedCluster(t)
	node, _ := masters(t, c, 0)
	b := connect(t, c)
	key := keyIn(b, 0, "shared")
	if _, err := b.Do(t.Context(), key, []string{"SET", key, "v"}); err != nil {
		t.Fatal(err)
	}
	thaw := freeze(t, node)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var hasty, patient sync.WaitGroup
	hasty.Go(func() {
		if _, err := b.Do(short, key, []string{"GET", key}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the hasty caller got %v", err)
		}
	})
	for range 4 {
		patient.Go(func() {
			if v, err := b.Do(t.Context(), key, []string{"GET", key}); err != nil || v != "v" {
				t.Errorf("a patient caller got %v, %v", v, err)
			}
		})
	}
	hasty.Wait()
	thaw()
	patient.Wait()
}

// A pipeline keeps the replies of the nodes that answered.
func TestPipelineKeepsOtherNodesReplies(t *testing.T) {
	c := privateCluster(t, harness.Options{NodeTimeout: time.Minute})
	node, _ := masters(t, c, 0)
	b := connect(t, c, func(o *rueidis.ClientOption) { o.ConnWriteTimeout = 3 * time.Second })
	var keys []string
	var cmds [][]string
	for slot := uint16(0); slot < slotCount; slot += 256 {
		key := keyIn(b, slot, "")
		keys, cmds = append(keys, key), append(cmds, []string{"ECHO", key})
	}
	for i, v := range b.Pipeline(t.Context(), keys, cmds) {
		if v != keys[i] {
			t.Fatalf("element %d: got %v", i, v)
		}
	}
	check := func(how string, replies []any, wrapped error) {
		t.Helper()
		lost, held := 0, 0
		for i, v := range replies {
			owner := *b.slots.owner(b.slotOf(keys[i]))
			err, failed := v.(error)
			switch {
			case owner == node.Addr() && failed && (wrapped == nil || errors.Is(err, wrapped)) && strings.HasPrefix(err.Error(), "rueidisbackend: "):
				lost++
			case owner != node.Addr() && v == keys[i]:
				held++
			default:
				t.Errorf("%s: element %d, of %s: got %v", how, i, owner, v)
			}
		}
		if lost == 0 || held == 0 {
			t.Errorf("%s: %d lost, %d held", how, lost, held)
		}
	}
	if err := node.Freeze(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the others may be slow
	defer cancel()
	check("frozen, by the context", b.Pipeline(ctx, keys, cmds), context.DeadlineExceeded)
	check("frozen, by the connection", b.Pipeline(t.Context(), keys, cmds), nil)
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	check("dead", b.Pipeline(t.Context(), keys, cmds), nil)
}

// gap writes to a slot through a fault, and returns the longest time between two
// acknowledged writes.
func gap(t *testing.T, b *Backend, key string, patience time.Duration, fault func()) time.Duration {
	t.Helper()
	write := func() error {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if patience > 0 {
			ctx, cancel = context.WithTimeout(ctx, patience)
		}
		defer cancel()
		_, err := b.Tx(ctx, key, [][]string{{"SET", key, "v"}})
		return err
	}
	eventually(t, "a write within the patience, though it may have to connect", func() bool { return write() == nil })
	var longest time.Duration
	var last error
	fault()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	acknowledged, begun := time.Now(), time.Now()
	for good := 0; good < 200; { // one second of good writes after the fault
		<-tick.C
		if err := write(); err != nil {
			last, good = err, 0
			if time.Since(begun) > 2*time.Minute {
				t.Fatalf("no recovery: %v", err)
			}
			continue
		}
		longest, acknowledged = max(longest, time.Since(acknowledged)), time.Now()
		good++
	}
	t.Logf("longest gap in acknowledged writes %v, last error: %v", longest.Round(10*time.Millisecond), last)
	return longest
}

func recommended(o *rueidis.ClientOption) {
	o.ClusterOption.ShardsRefreshInterval = time.Second
	o.ConnWriteTimeout = 500 * time.Millisecond
}

// A killed or frozen master costs little more than the time that the cluster
// takes to promote its replica: 1.6 to 2.5 s, or 5 s more where the election is
// repeated. A client that does not look for the new master takes until its own
// time-outs are over.
func TestRecoveryAfterMasterIsLost(t *testing.T) {
	defaults := func(*rueidis.ClientOption) {}
	most := 30 * time.Second
	if os.Getenv("SHARDKIT_LONG") == "1" {
		most = 15 * time.Second
	}
	if os.Getenv("SHARDKIT_IDLE") == "1" {
		most = 8 * time.Second
	}
	for _, test := range []struct {
		name     string
		change   func(*rueidis.ClientOption)
		patience time.Duration // of each write
		freeze   bool
	}{
		{"killed, default options", defaults, 0, false},
		{"frozen, default options, writes with a deadline", defaults, 500 * time.Millisecond, true},
		{"frozen, recommended options", recommended, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if os.Getenv("SHARDKIT_LONG") == "" && os.Getenv("SHARDKIT_IDLE") == "" {
				t.Parallel() // most of it is waiting
			}
			c := privateCluster(t, harness.Options{Replicas: 1})
			node, _ := masters(t, c, 0)
			b := connect(t, c, test.change)
			fault := node.Kill
			if test.freeze {
				fault = node.Freeze
			}
			longest := gap(t, b, keyIn(b, 0, "gap"), test.patience, func() {
				if err := fault(); err != nil {
					t.Fatal(err)
				}
			})
			if longest > most {
				t.Errorf("the longest gap is %v, want %v at most", longest, most)
			}
		})
	}
}

// After a graceful failover the old master is a replica and closes nothing: only
// MOVED tells, or READONLY for a script without keys.
func TestGracefulFailoverIsNoticed(t *testing.T) {
	c := privateCluster(t, harness.Options{Replicas: 1})
	node, _ := masters(t, c, 0)
	replicas, err := c.Replicas(t.Context(), node)
	if err != nil || len(replicas) != 1 {
		t.Fatal(replicas, err)
	}
	b := connect(t, c)
	key := keyIn(b, 0, "graceful")
	script := []string{"EVAL", "return redis.call('SET', ARGV[1], 'v')", "0", key}
	if v, err := b.Do(t.Context(), key, script); err != nil || v != "OK" {
		t.Fatal(v, err)
	}
	if err := c.Failover(t.Context(), replicas[0]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a script without keys runs on the new master", func() bool {
		v, err := b.Do(t.Context(), key, script)
		return err == nil && v == "OK"
	})
	if v, err := b.Do(t.Context(), key, []string{"CLUSTER", "MYID"}); err != nil || v != replicas[0].ID() {
		t.Errorf("CLUSTER MYID: got %v, %v, want %s", v, err, replicas[0].ID())
	}
}
