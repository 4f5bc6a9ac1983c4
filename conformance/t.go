package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/slotmap"
	"github.com/shardkit/shardkit/tiercache"
)

// T is a case's run: what it may use, and where it says what it saw. It looks like *testing.T, and the same holds: Fatalf and
// what else ends the case belong in the goroutine that runs it, the rest may be called from any.
type T struct {
	ctx   context.Context
	suite *suite
	c     Case

	mu       sync.Mutex
	failures []string
	notes    []string
	ended    *ending // set by what ends the case without a verdict
	cleanups []func()
	backend  replset.Backend
	shard    tiercache.Shard
}

// ending is why a case has no verdict.
type ending struct {
	status Status
	reason Reason
	text   string
}

// Context ends when the case must come to its end.
func (t *T) Context() context.Context { return t.ctx }

// Name returns the case's id.
func (t *T) Name() string { return t.c.ID }

// Seed is the run's seed, for libraries that want one. Rand is for the rest.
func (t *T) Seed() uint64 { return t.suite.Seed }

// Rand returns a source of the case's own, the same for the same seed and the same words.
func (t *T) Rand(words ...string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, t.c.ID, words)
	return rand.New(rand.NewPCG(t.suite.Seed, h.Sum64()))
}

// Scale stretches a time-out by Target.Slack.
func (t *T) Scale(d time.Duration) time.Duration { return t.suite.scale(d) }

// Helper is there for functions that take a testing.TB's part of T.
func (t *T) Helper() {}

// Errorf says what was seen instead of what is required. The case fails, and goes on.
func (t *T) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

// Error is Errorf for what Sprint makes of its arguments.
func (t *T) Error(args ...any) { t.Errorf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n")) }

// Fatalf is Errorf, and ends the case.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Fatal is Error, and ends the case.
func (t *T) Fatal(args ...any) {
	t.Error(args...)
	runtime.Goexit()
}

// Failed reports whether the case has failed so far.
func (t *T) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

// Logf notes something that a failure shows.
func (t *T) Logf(format string, args ...any) {
	t.mu.Lock()
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
	t.mu.Unlock()
	t.suite.Log("%s: "+format, append([]any{t.c.ID}, args...)...)
}

// Cleanup has f called when the case has ended, the last one first.
func (t *T) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// Unsupported ends the case: it is about something that the implementation does not have, and need not.
func (t *T) Unsupported(format string, args ...any) {
	t.end(StatusUnsupported, ReasonFeature, format, args...)
}

// Unavailable ends the case: these servers do not have what it takes to tell.
func (t *T) Unavailable(format string, args ...any) {
	t.end(StatusUnavailable, ReasonServers, format, args...)
}

// Broken ends the case: something other than the implementation went wrong, such as a fault that could not be made.
func (t *T) Broken(format string, args ...any) {
	t.end(StatusError, ReasonSetup, format, args...)
}

func (t *T) end(s Status, r Reason, format string, args ...any) {
	t.mu.Lock()
	if t.ended == nil {
		t.ended = &ending{s, r, fmt.Sprintf(format, args...)}
	}
	t.mu.Unlock()
	runtime.Goexit()
}

// Prefix begins every key that the case may use, and every set's name. What begins with it is deleted after the run.
func (t *T) Prefix() string { return t.suite.Prefix + t.c.ID + ":" + t.suite.attempt }

// KeyIn returns a key of the case's own in the slot.
func (t *T) KeyIn(slot int, name string) string {
	return slotmap.KeyForSlot(t.Prefix()+name, uint16(slot%slotmap.Slots))
}

// Backend returns the backend under test, connected once a case.
func (t *T) Backend() replset.Backend {
	if t.backend == nil {
		t.backend = t.Connect(t.Scale(3 * time.Second))
	}
	return t.backend
}

// Connect returns a backend over a new client, which waits for a silent server as long as patience says. It is closed when
// the case has ended.
func (t *T) Connect(patience time.Duration) replset.Backend {
	if t.suite.Target.Backend == nil {
		t.Unsupported("the target has no backend")
	}
	var b replset.Backend
	t.connect("backend", func() (closed func(), err error) {
		b, closed, err = t.suite.connect(t.ctx, patience)
		return closed, err
	})
	return b
}

// connect connects anew, for 10 s at most, where that took longer than a client whose patience is short waits.
func (t *T) connect(what string, try func() (closed func(), err error)) {
	for deadline := time.Now().Add(t.Scale(10 * time.Second)); ; {
		over := time.Now().After(deadline)
		closed, err := try()
		if err == nil {
			t.Cleanup(closed)
			return
		}
		var slow net.Error
		if over || t.ctx.Err() != nil || !errors.As(err, &slow) || !slow.Timeout() {
			t.Broken("connecting the %s: %v", what, err)
		}
	}
}

// Shard returns the shard under test, connected once a case.
func (t *T) Shard() tiercache.Shard {
	if t.shard == nil {
		t.shard = t.ConnectShard(t.Scale(3 * time.Second))
	}
	return t.shard
}

// ConnectShard returns a shard over a new client, which waits for a silent server as long as patience says. It is closed when
// the case has ended.
func (t *T) ConnectShard(patience time.Duration) tiercache.Shard {
	if t.suite.Target.Shard == nil {
		t.Unsupported("the target has no shard")
	}
	var s tiercache.Shard
	t.connect("shard", func() (closed func(), err error) {
		s, closed, err = t.suite.connectShard(t.ctx, patience)
		return closed, err
	})
	return s
}

// ShardServer returns the shard's server, for a case of tier fault to break. It ends the case where that is somebody
// else's.
func (t *T) ShardServer() *harness.Node {
	if t.suite.shard.group == nil {
		t.end(StatusUnavailable, ReasonNotOurs, "the server is not the suite's own to look into or to break")
	}
	return t.suite.shard.group.Nodes()[0]
}

// Cluster returns the servers, for a case of tier fault to break, or for others to look at. It ends the case where they are
// somebody else's.
func (t *T) Cluster() *harness.Cluster {
	if t.suite.cluster == nil {
		t.end(StatusUnavailable, ReasonNotOurs, "the servers are not the suite's own to look into or to break")
	}
	return t.suite.cluster
}

// Ask runs one command on the servers beside what is under test where that can be done, else through the backend.
func (t *T) Ask(key string, cmds ...[]string) []any {
	if c := t.suite.cluster; c != nil {
		owner, err := c.Owner(t.ctx, int(slotmap.Slot(key)))
		if err != nil {
			t.Broken("%v", err)
		}
		replies, err := owner.Pipeline(t.ctx, cmds...)
		if err != nil {
			t.Broken("%v", err)
		}
		return replies
	}
	keys := make([]string, len(cmds))
	for i := range keys {
		keys[i] = key
	}
	return t.Backend().Pipeline(t.ctx, keys, cmds)
}

// SlotFuncs returns the slot functions under test.
func (t *T) SlotFuncs() *SlotFuncs { return t.suite.Target.Slots }

// Ring returns the placement under test, of the nodes, with those named in down out of use.
func (t *T) Ring(nodes []ring.Node, down ...string) Placement {
	p, err := t.suite.Target.Ring(nodes, down...)
	if err != nil {
		t.Fatalf("the ring of %d nodes, %d of them down: %v", len(nodes), len(down), err)
	}
	return p
}
