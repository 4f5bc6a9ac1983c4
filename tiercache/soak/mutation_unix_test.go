//go:build unix

package soak

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A mutation is a mechanism of the cache, and how its source is changed so that
// the mechanism does nothing.
type mutation struct {
	name  string
	edits []edit

	// In these circumstances the mechanism is missed.
	schedule []Step
	duration time.Duration
	loader   time.Duration
	quick    bool // enough so for make test
	thin     bool // seldom missed: one read is enough
}

// An edit is of a file of package tiercache. What it changes is there once.
type edit struct{ file, old, new string }

const (
	mutantBeat = 200 * time.Millisecond
	ms         = time.Millisecond
)

var mutations = []mutation{
	mutation{
		name: "sequence check", quick: true, duration: 2500 * ms,
		schedule: everyShard(Step{Kind: Swallow, Process: -1, At: 500 * ms, For: 1500 * ms, Part: 0.5}),
	}.off("sequence"),
	mutation{
		name: "load marker", duration: 8 * time.Second, loader: 2 * mutantBeat,
		schedule: []Step{},
	}.off("marker"),
	mutation{
		// The note that a failed write leaves undoes most of what lands late.
		name: "write deadline", duration: 7 * time.Second, thin: true,
		schedule: pairs(Stall, 500*ms, 1800*ms, 300*ms),
	}.off("deadline"),
	mutation{
		name: "epoch", duration: 5 * time.Second,
		schedule: everyShard(Step{Kind: Old, Process: -1, At: 100 * ms, Delay: 1500 * ms, For: 100 * ms}),
	}.off("epoch"),
	mutation{
		name: "trust window", duration: 7 * time.Second,
		schedule: pairs(StopProc, 500*ms, 1200*ms, 100*ms),
	}.off("trust"),
	mutation{
		name: "notes", duration: 8 * time.Second,
		schedule: freezes(0, 500*ms, 2*time.Second, 1, 3500*ms, 2*time.Second),
	}.off("notes"),
	mutation{
		// What returns waits for all other shards to say that no notes lie there: a slow
		// one has it wait for longer, and writes at the quick one come meanwhile.
		name: "deletes at a shard that returns", duration: 8 * time.Second, thin: true,
		edits: []edit{{"notes.go", "if r.returning.Load() > 0 {", "if r.returning.Load() < 0 {"}},
		schedule: append(freezes(0, 500*ms, 500*ms, 0, 1500*ms, 500*ms, 0, 2500*ms, 500*ms, 0, 3500*ms, 500*ms, 0, 4500*ms, 500*ms, 0, 5500*ms, 500*ms, 0, 6500*ms, 500*ms),
			Step{Kind: Slow, Shard: 2, Process: -1, At: 100 * ms, For: 7500 * ms, Delay: 20 * ms}),
	},
	mutation{
		// Away twice within the life of what was written elsewhere the first time. In
		// between, for longer than a declaration stands: until then writes delete there too.
		name: "outage number", duration: 14 * time.Second,
		schedule: freezes(0, 500*ms, time.Second, 0, 2500*ms, 1200*ms, 1, 4700*ms, time.Second, 1, 6700*ms, 1200*ms, 2, 8900*ms, time.Second, 2, 10900*ms, 1200*ms),
	}.off("outage"),
	mutation{
		name: "deletes at the shard before", duration: 5 * time.Second,
		edits:    []edit{{"write.go", "erased := c.eraseBefore(ctx, keys, places)", "erased := error(nil)"}},
		schedule: changes(500*ms, 100*ms, 1500*ms, 100*ms, 2500*ms, 100*ms),
	},
	mutation{
		// Each of them alone ends copies within the bound.
		name: "end and check of copies", duration: 7 * time.Second,
		edits:    []edit{{"copy.go", "return o.window() }", "return 20 * o.window() }"}, {"write.go", "\tc.rewrite(ctx, r, reply, keys, items)\n", ""}},
		schedule: []Step{},
	}.off("copies"),
}

// changes have the spare shard join and leave in turn: when, and within how long.
func changes(list ...time.Duration) (steps []Step) {
	for i := 0; i < len(list); i += 2 {
		steps = append(steps, Step{Kind: []FaultKind{Join, Leave}[i/2%2], Shard: 3, Process: -1, At: list[i], For: list[i+1]})
	}
	return steps
}

// off turns the switch that the cache's own tests use.
func (m mutation) off(mechanism string) mutation {
	m.edits = append(m.edits, edit{"cache.go", "newCache[V](shards, opts, mechanisms{})", "newCache[V](shards, opts, mechanisms{" + mechanism + ": true})"})
	return m
}

func everyShard(s Step) (steps []Step) {
	for s.Shard = range 3 {
		steps = append(steps, s)
	}
	return steps
}

// freezes freezes shards: which, when, and for how long.
func freezes(list ...time.Duration) (steps []Step) {
	for i := 0; i < len(list); i += 3 {
		steps = append(steps, Step{Kind: Freeze, Shard: int(list[i]), Process: -1, At: list[i+1], For: list[i+2]})
	}
	return steps
}

// pairs does something to the first two processes, then to the others, then to the
// first again: to them, or to their ways to all shards.
func pairs(kind FaultKind, at, long, pause time.Duration) (steps []Step) {
	for n := range 6 {
		s := Step{Kind: kind, Shard: -1, Process: 2*(n/2%2) + n%2, At: at + time.Duration(n/2)*(long+pause), For: long}
		if kind == StopProc {
			steps = append(steps, s)
		} else {
			steps = append(steps, everyShard(s)...)
		}
	}
	return steps
}

// overlay changes the sources, and returns the file that tells go build so.
func (m *mutation) overlay(t *testing.T) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	for _, e := range m.edits {
		file, err := filepath.Abs(filepath.Join("..", e.file))
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), e.old); n != 1 {
			t.Fatalf("%s: %s holds %d times, want once: %s", m.name, e.file, n, e.old)
		}
		replace[file] = filepath.Join(dir, filepath.Base(e.file))
		if err := os.WriteFile(replace[file], []byte(strings.Replace(string(source), e.old, e.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// build returns a worker of the changed sources.
func (m *mutation) build(t *testing.T) string {
	t.Helper()
	worker := filepath.Join(t.TempDir(), "worker")
	args := []string{"build", "-overlay", m.overlay(t), "-o", worker}
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "./internal/worker")...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", m.name, err, out)
	}
	return worker
}

// TestMutationsAreOfTheSources: what they change is there.
func TestMutationsAreOfTheSources(t *testing.T) {
	for _, m := range mutations {
		m.overlay(t)
	}
}

// TestMutationsAreCaught: without any one of its mechanisms the cache violates
// what it promises, and with all of them it does not.
func TestMutationsAreCaught(t *testing.T) {
	turns := make(chan struct{}, 2) // more at one time, and they have no time to be missed
	for _, m := range mutations {
		if !m.quick && !long() {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			o := &Options{
				Duration: m.duration, Heartbeat: mutantBeat, Loader: m.loader, Shards: 3, Processes: 4, Rate: 500, Schedule: m.schedule,
			}
			if long() {
				if r := judge(t, o); r.old() > 0 {
					t.Errorf("with all mechanisms: %v", r.Violations)
				}
			}
			o.Worker = m.build(t)
			caught := 0
			for o.Seed = 1; o.Seed <= 8; o.Seed++ {
				r := judge(t, o)
				if caught += r.old(); caught >= enough || m.thin && caught > 0 {
					t.Logf("MUTATION %-16s caught by %d reads of seeds 1 to %d, at worst %v behind; %v", m.name, caught, o.Seed, r.largest(), r.Violations[0])
					return
				}
			}
			t.Errorf("%s is hardly missed: by %d reads, want %d", m.name, caught, enough)
		})
	}
}

// enough reads that must not be are no accident.
const enough = 5

// old is how many reads gave what they must not.
func (r *Report) old() int {
	return r.ByKind[Stale] + r.ByKind[Undead] + r.ByKind[Hidden] + r.ByKind[Forgotten] + r.ByKind[RefusedIn]
}
