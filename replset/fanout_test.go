package replset

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/slotmap"
)

// onNode reports whether the in-memory cluster's n-th master owns the slot.
func onNode(n int, slot uint16) bool { return int(slot)*3/slotmap.Slots == n }

// wantProgress checks that the calls are in order and end with every slot told.
func wantProgress(t *testing.T, seen []Progress) {
	t.Helper()
	if len(seen) == 0 {
		t.Error("Progress was never called")
		return
	}
	for i, p := range seen[1:] {
		if p.Done < seen[i].Done || p.Total < seen[i].Total || p.Op != seen[i].Op {
			t.Errorf("Progress went from %+v to %+v", seen[i], p)
		}
	}
	if last := seen[len(seen)-1]; last.Done+last.Failed != last.Total {
		t.Errorf("Progress ended with %+v", last)
	}
}

func TestProgress(t *testing.T) {
	var inside atomic.Int32
	var seen []Progress
	opts := &Options{Progress: func(p Progress) {
		if inside.Add(1) != 1 {
			t.Error("Progress is called by two goroutines at once")
		}
		seen = append(seen, p)
		inside.Add(-1)
	}}
	s := newSet(t, memory.New(), opts)
	publish(t, s, "a")
	wantProgress(t, seen)
	last := seen[len(seen)-1]
	if last != (Progress{Op: "publish", Done: slotmap.Slots, Total: slotmap.Slots}) {
		t.Errorf("Progress ended with %+v", last)
	}
	if len(seen) < 20 {
		t.Errorf("Progress was called %d times in a write of 16384 slots", len(seen))
	}
}

func TestProgressOfAWriteThatFails(t *testing.T) {
	b := newHooks()
	var seen []Progress
	s := newFew(t, b, Options{Patience: time.Millisecond, Progress: func(p Progress) { seen = append(seen, p) }})
	b.before = func(slot uint16, cmd []string) error {
		if onNode(1, slot) && slot != s.home && cmd[0] == "SCARD" {
			return errors.New("no route to host")
		}
		return nil
	}
	err := s.Publish(t.Context(), []string{"a"})
	var partly *WriteError
	if !errors.As(err, &partly) {
		t.Fatalf("got %v", err)
	}
	wantProgress(t, seen)
	if last := seen[len(seen)-1]; last.Failed != len(partly.Failed) || last.Total != len(s.slots.list) {
		t.Errorf("Progress ended with %+v, the error names %d slots", last, len(partly.Failed))
	}
}

// A node that does not answer costs a client time-out a try, not one for every
// few of its slots.
func TestPatienceBoundsAWrite(t *testing.T) {
	b := newHooks()
	s := newSet(t, b, &Options{Patience: 200 * time.Millisecond})
	silent := errors.New("read tcp 127.0.0.1:7000: i/o timeout")
	var waited atomic.Int64
	b.before = func(slot uint16, cmd []string) error {
		if onNode(2, slot) && slot != s.home && cmd[0] == "GET" && strings.HasSuffix(cmd[1], stampSuffix) {
			if waited.Add(1)%stepFirst == 0 { // a time-out for each pipeline
				time.Sleep(20 * time.Millisecond)
			}
			return silent
		}
		return nil
	}
	start := time.Now()
	err := s.Publish(t.Context(), []string{"a"})
	took := time.Since(start)
	if took > 5*time.Second { // all 5461 slots, 16 a step, would take 7 s a pass
		t.Errorf("it took %v with 200ms of patience", took)
	}
	var partly *WriteError
	if !errors.As(err, &partly) || !errors.Is(err, silent) {
		t.Fatalf("got %v, want a *WriteError with %v", err, silent)
	}
	want := 0
	for slot := range uint16(slotmap.Slots) {
		if onNode(2, slot) && slot != s.home {
			if partly.Failed[want].Slot != slot {
				t.Fatalf("failed slot %d is %d, want %d", want, partly.Failed[want].Slot, slot)
			}
			want++
		}
	}
	if len(partly.Failed) != want || partly.Written != slotmap.Slots-want {
		t.Errorf("%d failed, %d written, want %d failed", len(partly.Failed), partly.Written, want)
	}
	if n := waited.Load(); n > 1000 {
		t.Errorf("the silent node was asked for %d stamps", n)
	}
}

// A node that says nothing at all is asked once a pass.
func TestSilentNodeIsAskedOnceAPass(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{Patience: 300 * time.Millisecond})
	silent := errors.New("i/o timeout")
	var asked, passes atomic.Int64
	b.before = func(slot uint16, cmd []string) error {
		switch {
		case cmd[0] == "CLUSTER":
			passes.Add(1)
		case onNode(0, slot) && slot != s.home:
			asked.Add(1)
			return silent
		}
		return nil
	}
	var partly *WriteError
	if err := s.Publish(t.Context(), []string{"a"}); !errors.As(err, &partly) || !errors.Is(err, silent) {
		t.Fatalf("got %v", err)
	}
	if asked.Load() > passes.Load() || passes.Load() < 2 {
		t.Errorf("the node was asked %d times in %d passes", asked.Load(), passes.Load())
	}
}

// A write that takes longer than its patience has some left for the slots that
// failed in passing.
func TestPatienceIsForRepetitions(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{Patience: 30 * time.Millisecond})
	bad, slow := s.otherSlot(0), s.otherSlot(60)
	fail := times(1, errors.New("connection refused"))
	b.before = func(slot uint16, cmd []string) error {
		switch {
		case slot == slow && cmd[0] == "SADD":
			time.Sleep(100 * time.Millisecond)
		case slot == bad && cmd[0] == "SADD":
			return fail()
		}
		return nil
	}
	if err := s.Publish(t.Context(), []string{"a"}); err != nil {
		t.Error(err)
	}
	wantEverywhere(t, s, "a")
}

func TestPassingErrorsAreWaitedOut(t *testing.T) {
	for _, passing := range []error{
		serverError("TRYAGAIN Multiple keys request during rehashing of slot"),
		serverError("CLUSTERDOWN The cluster is down"),
		serverError("READONLY You can't write against a read only replica."),
		serverError("LOADING Redis is loading the dataset in memory"),
		errors.New("EOF"),
		fmt.Errorf("dial tcp: i/o timeout: %w", context.DeadlineExceeded),
	} {
		b := newHooks()
		s := newFew(t, b, Options{})
		look, add := eachSlot(2, passing), eachSlot(2, passing)
		b.before = func(slot uint16, cmd []string) error {
			switch cmd[0] {
			case "SCARD":
				return look(slot)
			case "SADD":
				return add(slot)
			}
			return nil
		}
		if err := s.Publish(t.Context(), []string{"a"}); err != nil {
			t.Errorf("%q: got %v", passing, err)
		}
		wantEverywhere(t, s, "a")
	}
}

// An error that time does not cure is not repeated.
func TestFinalErrorsAreNotRepeated(t *testing.T) {
	for _, final := range []serverError{
		"NOPERM this user has no permissions to run the 'sadd' command",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"NOAUTH Authentication required.",
		"MISCONF Redis is configured to save RDB snapshots",
	} {
		b := newHooks()
		s := newFew(t, b, Options{})
		bad := s.otherSlot(11)
		asked := 0
		b.before = func(slot uint16, cmd []string) error {
			if slot == bad && cmd[0] == "SADD" {
				asked++
				return final
			}
			return nil
		}
		err := s.Publish(t.Context(), []string{"a"})
		var partly *WriteError
		if !errors.As(err, &partly) || failedSlots(partly) != fmt.Sprint(bad) || !errors.Is(err, final) || asked != 1 {
			t.Errorf("%q: got %v after %d tries, want slot %d named after one", final, err, asked, bad)
		}
	}
}

func TestEndedContextBeforeAWrite(t *testing.T) {
	b := memory.New()
	s := newFew(t, b, Options{})
	publish(t, s, "a")
	was := fmt.Sprint(readAll(t, s))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for _, ctx := range []context.Context{cancelled, expired} {
		for op, err := range map[string]error{
			"publish": s.Publish(ctx, []string{"b"}),
			"add":     s.Add(ctx, "b"),
			"clear":   s.Clear(ctx),
		} {
			var slot *SlotError
			if !errors.Is(err, ctx.Err()) || !errors.As(err, &slot) || slot.Slot != s.home || slot.Op != op {
				t.Errorf("%s: got %v, want %v at the home slot", op, err, ctx.Err())
			}
		}
		if _, err := s.Len(ctx, "x"); !errors.Is(err, ctx.Err()) && !errors.Is(err, ErrReplicaMissing) {
			t.Errorf("len: got %v", err)
		}
	}
	if fmt.Sprint(readAll(t, s)) != was {
		t.Error("something was written")
	}
}

// A context that ends during a write: the error names every slot that does not
// hold it, and wraps the context's.
func TestContextEndsDuringAWrite(t *testing.T) {
	for _, after := range []int64{1, 2, 10, 32} {
		ctx, cancel := context.WithCancel(t.Context())
		b := newHooks()
		s := newFew(t, b, Options{})
		var written atomic.Int64
		b.after = func(_ uint16, cmd []string) error {
			if cmd[0] == "SET" && strings.HasSuffix(cmd[1], stampSuffix) && written.Add(1) == after {
				cancel()
			}
			return nil
		}
		err := s.Publish(ctx, []string{"a"})
		cancel()
		var partly *WriteError
		if !errors.As(err, &partly) || !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled after %d slots: got %v, want a *WriteError with %v", after, err, context.Canceled)
		}
		named := map[uint16]bool{}
		for i, f := range partly.Failed {
			named[f.Slot] = true
			if i > 0 && partly.Failed[i-1].Slot >= f.Slot {
				t.Fatalf("slots %d and %d are named in this order", partly.Failed[i-1].Slot, f.Slot)
			}
		}
		if partly.Written+len(named) != len(s.slots.list) || partly.Written < int(after) || partly.Number == 0 || partly.Op != "publish" {
			t.Errorf("cancelled after %d slots: %d written, %d named, number %d", after, partly.Written, len(named), partly.Number)
		}
		for slot, r := range readAll(t, s) {
			if holds := r.members == "a" && r.number() == partly.Number; !holds && !named[slot] {
				t.Fatalf("slot %d holds %q and is not named", slot, r.members)
			}
		}
		b.after = nil
		publish(t, s, "a", "b") // again is always right
		wantEverywhere(t, s, "a", "b")
	}
}

func TestSlotsWithoutAMaster(t *testing.T) {
	b := &remapped{Backend: memory.New()}
	s := newFew(t, b, Options{Patience: 50 * time.Millisecond})
	orphans := []uint16{s.otherSlot(3), s.otherSlot(40)}
	b.slots = func(v any) any {
		host := []any{"127.0.0.1", int64(7001)}
		list := []any{}
		next := uint16(0)
		for _, o := range orphans {
			list = append(list, []any{int64(next), int64(o - 1), host})
			next = o + 1
		}
		return append(list, []any{int64(next), int64(slotmap.Slots - 1), host})
	}
	err := s.Publish(t.Context(), []string{"a"})
	var partly *WriteError
	if !errors.As(err, &partly) || failedSlots(partly) != fmt.Sprint(orphans[0], " ", orphans[1]) || !errors.Is(err, ErrNoOwner) {
		t.Errorf("got %v, want slots %d named with ErrNoOwner", err, orphans)
	}
	b.slots = nil
	publish(t, s, "a")
	wantEverywhere(t, s, "a")
}

// A client that knows from its map that the slot has no master refuses a command
// in its own words; a write's home slot and a read are told as such all the same.
func TestSlotWithoutAMasterInTheClientsWords(t *testing.T) {
	b := &remapped{Backend: newHooks()}
	s := newFew(t, b, Options{Patience: time.Millisecond, ReadPatience: time.Millisecond})
	unknown := errors.New("client: no master serves this slot")
	b.Backend.(*hooks).before = func(slot uint16, cmd []string) error {
		if cmd[0] == "CLUSTER" || slot != s.home {
			return nil
		}
		return unknown
	}
	near := s.replicaKey(s.home)
	check := func(owned bool) {
		t.Helper()
		_, read := s.Members(t.Context(), near)
		_, into := s.IntersectInto(t.Context(), near+"x", near+"y")
		for what, err := range map[string]error{"publish": s.Publish(t.Context(), []string{"a"}), "members": read, "into": into} {
			if !errors.Is(err, unknown) || errors.Is(err, ErrNoOwner) == owned {
				t.Errorf("%s in a slot with a master %v: got %v", what, owned, err)
			}
		}
	}
	check(true)
	b.slots = func(any) any {
		host := []any{"127.0.0.1", int64(7001)}
		return []any{[]any{int64(0), int64(s.home) - 1, host}, []any{int64(s.home) + 1, int64(slotmap.Slots - 1), host}}
	}
	check(false)
}

// remapped is a backend that changes CLUSTER SLOTS.
type remapped struct {
	Backend
	slots func(v any) any
}

func (r *remapped) Do(ctx context.Context, key string, cmd []string) (any, error) {
	v, err := r.Backend.Do(ctx, key, cmd)
	if cmd[0] == "CLUSTER" && r.slots != nil && err == nil {
		v = r.slots(v)
	}
	return v, err
}

// The servers' refusal of scripts is asked for once.
func TestRefusedScriptsAreRemembered(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{})
	evals := 0
	b.before = func(_ uint16, cmd []string) error {
		if strings.HasPrefix(cmd[0], "EVAL") {
			evals++
		}
		return nil
	}
	publish(t, s, "a")
	publish(t, s, "b")
	do(t, b, "SADD", s.KeyFor("")+"x", "b")
	if _, err := s.IntersectInto(t.Context(), s.KeyFor("")+"y", s.KeyFor("")+"x"); err != nil {
		t.Fatal(err)
	}
	if evals != 1 {
		t.Errorf("%d scripts were tried, want 1", evals)
	}
}

// Some nodes refuse scripts, others do not (a user's rules are set node by
// node): those that do are written by transactions.
func TestScriptsRefusedByOneNode(t *testing.T) {
	b := &homeScripts{hooks: newHooks()}
	s := newFew(t, b, Options{})
	b.set = s
	publish(t, s, "a", "b")
	wantEverywhere(t, s, "a", "b")
}

// homeScripts runs the write at home as the script would, and refuses scripts
// on all other nodes.
type homeScripts struct {
	*hooks
	set *Set
}

func (h *homeScripts) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if !strings.HasPrefix(cmd[0], "EVAL") {
		return h.hooks.Do(ctx, key, cmd)
	}
	if slotmap.Slot(key) != h.set.home {
		return nil, serverError("NOPERM this user has no permissions to run the 'evalsha' command")
	}
	// KEYS[1] and the arguments of apply.lua for a replacement at home
	replica, args := cmd[3], cmd[3+3:]
	members := args[10:]
	number := time.Now().UnixMicro()
	st := stamp{number, len(members), digestOf(members)}
	if _, err := h.Backend.Tx(ctx, key, [][]string{
		{"DEL", replica}, append([]string{"SADD", replica}, members...), {"SET", replica + stampSuffix, st.String()},
	}); err != nil {
		return nil, err
	}
	return "ok " + st.String(), nil
}

// A lease left by a writer that died holds others up only for its life.
func TestLeaseOfADeadWriterEnds(t *testing.T) {
	b := memory.New()
	s := newFew(t, b, Options{})
	lease := s.replicaKey(s.home) + leaseSuffix
	do(t, b, "SET", lease, "of a writer that died", "PX", "300")
	start := time.Now()
	publish(t, s, "a")
	if took := time.Since(start); took < 250*time.Millisecond {
		t.Errorf("another's lease was passed over: the write took %v", took)
	}
	wantEverywhere(t, s, "a")
	if do(t, b, "EXISTS", lease) != int64(0) {
		t.Error("the lease stands after the write")
	}
}

func TestContendedWriteSaysSo(t *testing.T) {
	b := memory.New()
	s := newFew(t, b, Options{Patience: 30 * time.Millisecond})
	lease := s.replicaKey(s.home) + leaseSuffix
	do(t, b, "SET", lease, "of another")
	if err := s.Publish(t.Context(), []string{"a"}); !errors.Is(err, ErrContended) || !strings.Contains(err.Error(), lease) {
		t.Errorf("got %v, want ErrContended, and the lease %s named", err, lease)
	}
	if do(t, b, "GET", lease) != "of another" {
		t.Error("another's lease was taken away")
	}
}

// Who may not delete is told so, each time: his own lease is not another writer's.
func TestWriterThatMayNotDelete(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{Patience: 30 * time.Millisecond})
	publish(t, s, "a")
	b.before = func(_ uint16, cmd []string) error {
		if strings.HasPrefix(cmd[0], "EVAL") || cmd[0] == "DEL" {
			return serverError("NOPERM this user has no permissions to run the '" + strings.ToLower(cmd[0]) + "' command")
		}
		return nil
	}
	for range 2 {
		if err := s.Publish(t.Context(), []string{"b"}); err == nil || errors.Is(err, ErrContended) || !strings.Contains(err.Error(), "'del'") {
			t.Errorf("got %v, want the refusal of DEL", err)
		}
		if err := s.Apply(t.Context(), Delta{Add: []string{"c"}}); err != nil {
			t.Errorf("a delta deletes nothing: %v", err)
		}
	}
	wantEverywhere(t, s, "a", "c")
}

func TestWritesLeaveNoGoroutine(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{Patience: 20 * time.Millisecond, ReadPatience: time.Millisecond})
	before := runtime.NumGoroutine()
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond/4)
		_ = s.Publish(ctx, []string{"a"})
		cancel()
		b.before = func(slot uint16, _ []string) error {
			if i%2 == 0 && onNode(i%3, slot) {
				return errors.New("no route to host")
			}
			return nil
		}
		_ = s.Publish(t.Context(), []string{"b"})
		_, _ = s.ContainsMany(t.Context(), make([]string, 5000))
	}
	soon(t, fmt.Sprintf("%d goroutines", before), func() bool { return runtime.NumGoroutine() <= before })
}

func TestPace(t *testing.T) {
	p := newPace(1, 700*time.Microsecond)
	if p.slots != stepFirst {
		t.Errorf("the first step is %d slots, want %d", p.slots, stepFirst)
	}
	if got := newPace(1_000_000, time.Millisecond).slots; got != 1 {
		t.Errorf("the first step of a million members is %d slots, want 1", got)
	}
	p.network = time.Millisecond
	for i, step := range []struct {
		cost time.Duration // of a replica
		want int           // slots of the next step
	}{
		{20 * time.Microsecond, 32}, // at most doubled
		{20 * time.Microsecond, 35},
		{5 * time.Microsecond, 70},
		{5 * time.Microsecond, 140},
		{500 * time.Microsecond, 112}, // late: a quarter more
		{5 * time.Microsecond, 140},
		{time.Nanosecond, 280},
		{time.Nanosecond, 512}, // the most
	} {
		p.took(p.network + step.cost*time.Duration(p.slots))
		if p.slots != step.want {
			t.Errorf("step %d: got %d slots, want %d", i, p.slots, step.want)
		}
	}
	p.network = time.Second
	if p.took(3 * time.Millisecond); p.network != 3*time.Millisecond {
		t.Errorf("a step took 3 ms, and the network is said to take %v of it", p.network)
	}
	for range 50 {
		p.took(time.Hour)
	}
	if p.slots != 1 {
		t.Errorf("a slow node still gets %d slots a step", p.slots)
	}
}

// A round trip that was slow for once, as one that dials, would make steps too long.
func TestRoundTripIsTheQuickest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHooks()
		trips := []time.Duration{9 * time.Millisecond, time.Millisecond, 5 * time.Millisecond}
		b.before = func(_ uint16, cmd []string) error {
			if cmd[0] == "EXISTS" {
				time.Sleep(trips[0])
				trips = trips[1:]
			}
			return nil
		}
		f := &fanout{set: newFew(t, b, Options{})}
		wantTrip := func(want time.Duration, left int) {
			t.Helper()
			got, err := f.roundTrip(t.Context(), f.set.nodeAt("a"), 1)
			if got != want || err != nil || len(trips) != left {
				t.Errorf("got %v, %v, and %d commands left, want %v and %d", got, err, len(trips), want, left)
			}
		}
		wantTrip(time.Millisecond, 0)
		trips = []time.Duration{3 * time.Millisecond, 3 * time.Millisecond, 2 * time.Millisecond}
		time.Sleep(tripLife - time.Second)
		wantTrip(time.Millisecond, 3) // known
		time.Sleep(time.Second)
		wantTrip(2*time.Millisecond, 0)
	})
}
