package harness

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// An Event is something that was done to servers, or seen of them.
type Event struct {
	At   time.Time     // when it began
	Node string        // the node's name, or "" for the whole group
	What string        // such as "kill"
	Took time.Duration // until it was done; 0 for a moment
}

// A Timeline lists the events of a cluster or a group of shards in the order in which they were noted. It may be used
// concurrently.
type Timeline struct {
	start time.Time
	log   func(format string, args ...any)

	mu     sync.Mutex
	events []Event
	closed bool
}

func newTimeline(log func(string, ...any)) *Timeline {
	return &Timeline{start: time.Now(), log: log}
}

// Note adds an event of the caller's own, so that what a test did and what the servers did read as one story.
func (t *Timeline) Note(node, what string) { t.add(time.Now(), node, what, 0) }

// since notes an event that began at start and ends now.
func (t *Timeline) since(start time.Time, node, what string) {
	t.add(start, node, what, time.Since(start))
}

func (t *Timeline) add(at time.Time, node, what string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, Event{at, node, what, took})
	if t.closed {
		return
	}
	who := node
	if who == "" {
		who = "all"
	}
	if took == 0 {
		t.log("harness: %s: %s", who, what)
	} else {
		t.log("harness: %s: %s (%s)", who, what, readable(took))
	}
}

// mute ends the calls to Options.Log, which may be a t.Logf that panics after its test.
func (t *Timeline) mute() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// Events returns a copy of the events so far.
func (t *Timeline) Events() []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Event(nil), t.events...)
}

// WriteTo writes the events as aligned lines: seconds since the start, node, what, and how long it took.
func (t *Timeline) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, t.String())
	return int64(n), err
}

// String returns what WriteTo writes.
func (t *Timeline) String() string {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, e := range t.Events() {
		node, took := e.Node, "-"
		if node == "" {
			node = "all"
		}
		if e.Took > 0 {
			took = readable(e.Took)
		}
		fmt.Fprintf(tw, "%9.3fs\t%s\t%s\t%s\n", e.At.Sub(t.start).Seconds(), node, took, e.What)
	}
	tw.Flush()
	return b.String()
}

// readable rounds to what a reader of a timeline cares for.
func readable(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}
