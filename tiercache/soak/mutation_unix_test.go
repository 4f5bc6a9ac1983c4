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
	name string
	file string // of package tiercache
	old  string // is there once
	new  string

	// In these circumstances the mechanism is missed.
	schedule []Step
	duration time.Duration
	loader   time.Duration
	quick    bool // enough so for make test
	thin     bool // seldom missed: one read is enough
}

const (
	mutantBeat = 200 * time.Millisecond
	ms         = time.Millisecond
)

var mutations = []mutation{
	mutation{
		name: "sequence check", quick: true, duration: 4 * time.Second,
		schedule: everyShard(Step{Kind: Swallow, Process: -1, At: 500 * ms, For: 3 * time.Second, Part: 0.5}),
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
		// Away twice within the life of what was written elsewhere the first time. In
		// between, for longer than a declaration stands: until then writes delete there too.
		name: "outage number", duration: 14 * time.Second,
		schedule: freezes(0, 500*ms, time.Second, 0, 2500*ms, 1200*ms, 1, 4700*ms, time.Second, 1, 6700*ms, 1200*ms, 2, 8900*ms, time.Second, 2, 10900*ms, 1200*ms),
	}.off("outage"),
}

// off turns the switch that the cache's own tests use.
func (m mutation) off(mechanism string) mutation {
	m.file, m.old, m.new = "cache.go", "newCache[V](shards, opts, mechanisms{})", "newCache[V](shards, opts, mechanisms{"+mechanism+": true})"
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
	file, err := filepath.Abs(filepath.Join("..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Fatalf("%s: %s holds %d times, want once: %s", m.name, m.file, n, m.old)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, filepath.Base(m.file))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		changed:                       []byte(strings.Replace(string(source), m.old, m.new, 1)),
		filepath.Join(dir, "overlay"): replace,
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "overlay")
}

// build returns a worker of the changed sources.
func (m *mutation) build(t *testing.T) string {
	t.Helper()
	worker := filepath.Join(t.TempDir(), "worker")
	args := []string{"build", "-overlay", m.overlay(t), "-o", worker}
	if raceEnabled {
		args = append(args, "-race") // or everything underneath is compiled anew
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
	return r.ByKind[Stale] + r.ByKind[Undead] + r.ByKind[Hidden] + r.ByKind[RefusedIn]
}
