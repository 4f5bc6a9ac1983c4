package soak

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// story makes a history of lines such as
//
//	p1 set 3 100..110             a write of version 3, in ms; its outcome is ok
//	p1 set 4 200..700 unknown     deadline=700 by default: 500 ms after it began
//	p2 get 3 1000..1001 stored    or loaded; get - finds nothing
//	p2 get 3 9000..9001 stored final key=2
//	p2 get 3 9000..9001 stored life=2   of the process; 1 by default
//	fault cut 1 p2 1000..5000     on the first shard, for process 2; p0 is for all
//	pause p1 100..900
//
// of two keys in order, which the first shard owns, and a racing one.
func story(t *testing.T, text string) *History {
	t.Helper()
	h := &History{Header: Header{
		Subject: Tiercache, Processes: 3, Shards: 2, Duration: 10 * time.Second, Ordered: 2, Racing: 1, Owners: []int{0, 0, 1},
		Bounds: (&Options{Heartbeat: time.Second, Margin: 500 * time.Millisecond}).bounds(),
	}}
	span := func(s string) (from, to int64) {
		if _, err := fmt.Sscanf(s, "%d..%d", &from, &to); err != nil {
			t.Fatalf("%q is no span: %v", s, err)
		}
		return from * 1e6, to * 1e6
	}
	number := func(s string) (n int) {
		if _, err := fmt.Sscanf(s, "p%d", &n); err != nil {
			t.Fatalf("%q is no process: %v", s, err)
		}
		return n - 1
	}
	for l := range strings.Lines(text) {
		words := strings.Fields(l)
		switch {
		case len(words) == 0:
			continue
		case words[0] == "fault":
			f := Fault{Step: Step{Kind: FaultKind(words[1]), Process: number(words[3])}}
			fmt.Sscan(words[2], &f.Shard)
			f.Shard--
			f.Begin, f.End = span(words[4])
			h.Faults = append(h.Faults, f)
			continue
		case words[0] == "pause":
			p := Pause{Process: number(words[1])}
			p.Begin, p.End = span(words[2])
			h.Pauses = append(h.Pauses, p)
			continue
		case words[0] == "incident":
			h.Incidents = append(h.Incidents, Incident{Kind: words[1]})
			continue
		}
		op := Op{Process: number(words[0]), Kind: Kind(words[1]), Outcome: OK}
		op.Begin, op.End = span(words[3])
		op.Deadline = op.Begin + 500e6
		if !op.Kind.Write() {
			op.Deadline = op.Begin + 2000e6
		}
		if words[2] == "-" {
			op.Outcome = Absent
		} else {
			fmt.Sscan(words[2], &op.Version)
		}
		for _, w := range words[4:] {
			name, value, _ := strings.Cut(w, "=")
			switch name {
			case "stored":
			case "loaded":
				op.Loaded = true
			case "final":
				op.Final = true
			case "foreign":
				op.Foreign, op.Version = value, 0
			case "key":
				fmt.Sscan(value, &op.Key)
			case "life":
				fmt.Sscan(value, &op.Life)
				op.Life--
			case "deadline":
				fmt.Sscan(value, &op.Deadline)
				op.Deadline *= 1e6
			case string(Unknown), string(Refused), string(Begun):
				op.Outcome = Outcome(name)
			default:
				t.Fatalf("what is %q?", w)
			}
		}
		if op.Kind.Write() {
			begun := op
			begun.Outcome, begun.End = Begun, 0
			h.Ops = append(h.Ops, begun)
			if op.Outcome == Begun {
				continue
			}
		}
		h.Ops = append(h.Ops, op)
	}
	return h
}

// one is a count of violations by kind.
func one(kind string) map[string]int { return map[string]int{kind: 1} }

var stories = []struct {
	name, story string
	want        map[string]int
}{
	{"nothing at all", ``, nil},
	{"a write is read", `
		p1 set 1 0..10
		p1 set 2 100..110
		p2 get 2 5000..5001 stored`, nil},
	{"old within the bound", `
		p1 set 1 0..10
		p1 set 2 100..110
		p2 get 1 2110..2111 stored`, nil},
	{"old beyond the bound", `
		p1 set 1 0..10
		p1 set 2 100..110
		p2 get 1 2111..2112 stored`, one(Stale)},
	{"a read counts from its begin", `
		p1 set 1 0..10
		p1 set 2 100..110
		p2 get 1 1000..2900 stored`, nil},
	{"loaded values may be too old as well", `
		p1 set 1 0..10
		p1 set 2 100..110
		p2 load 1 2200..2201 loaded`, one(Stale)},
	{"one key of many", `
		p1 set 1 0..10
		p1 set 2 100..110
		p2 many 2 2200..2201 stored
		p2 many 1 2200..2201 stored
		p2 load-many 1 2200..2201 stored`, map[string]int{Stale: 2}},
	{"keys are apart", `
		p1 set 1 0..10
		p1 set 2 100..110 key=1
		p2 get 1 9000..9001 stored`, nil},
	{"the first of several overwrites counts", `
		p1 set 1 0..10
		p1 set 2 100..110
		p1 set 3 2000..2010
		p2 get 1 2200..2201 stored`, one(Stale)},
	{"overwritten again, but only within the bound", `
		p1 set 1 0..10
		p1 set 2 100..110
		p1 set 3 2000..2010
		p2 get 2 2200..2201 stored`, nil},

	{"a miss is never old", `
		p1 set 1 0..10
		p2 get - 5000..5001
		p2 many - 5000..5001`, nil},
	{"a deleted value comes back", `
		p1 set 1 0..10
		p1 remove 2 100..110
		p2 get 1 2200..2201 stored`, one(Undead)},
	{"an invalidated value comes back", `
		p1 set 1 0..10
		p1 invalidate 2 100..110
		p2 get 2 2100..2101 loaded
		p2 get 1 2200..2201 stored`, one(Undead)},
	{"a deleted key is written again", `
		p1 set 1 0..10
		p1 remove 2 100..110
		p1 set 3 200..210
		p2 get 3 9000..9001 stored`, nil},
	{"a loader finds nothing, and there is nothing", `
		p1 set 1 0..10
		p1 remove 2 100..110
		p2 load - 9000..9001`, nil},
	{"a loader finds nothing, and never was there anything", `
		p2 load - 9000..9001`, nil},
	{"nothing, where there is something by now", `
		p1 remove 1 0..10
		p1 set 2 100..110
		p2 load - 2200..2201`, one(Hidden)},
	{"nothing, where there is something since within the bound", `
		p1 remove 1 0..10
		p1 set 2 100..110
		p2 load - 2100..2101`, nil},
	{"nothing, by a removal that is under way", `
		p1 set 1 0..10
		p1 remove 2 3000..3100
		p2 load - 3050..3051`, nil},
	{"nothing, before the removal", `
		p1 set 1 0..10
		p1 remove 2 3000..3100
		p2 load - 2998..2999`, one(Hidden)},

	{"a write with unknown outcome is seen", `
		p1 set 1 0..10
		p1 set 2 100..600 unknown
		p2 get 2 5000..5001 stored`, nil},
	{"a write with unknown outcome is not seen", `
		p1 set 1 0..10
		p1 set 2 100..600 unknown
		p2 get 1 5000..5001 stored`, nil},
	{"a write of which nothing more is known may be either", `
		p1 set 1 0..10
		p1 set 2 100..0 begun
		p2 get 1 5000..5001 stored
		p2 get 2 5100..5101 stored`, nil},
	{"a write with unknown outcome is seen, and then not", `
		p1 set 1 0..10
		p1 set 2 100..600 unknown
		p2 get 2 1000..1001 stored
		p3 get 1 3002..3003 stored`, one(Stale)},
	{"what was loaded proves no write", `
		p1 set 1 0..10
		p1 set 2 100..600 unknown
		p2 load 2 1000..1001 loaded
		p3 get 1 3002..3003 stored`, nil},
	{"a write with unknown outcome lands after a later one", `
		p1 set 1 0..10
		p1 set 2 100..600 unknown
		p2 set 3 700..710
		p3 get 2 2711..2712 stored`, one(Stale)},
	{"two writes at one time may land in any order", `
		p1 set 1 0..10
		p1 set 2 100..200 unknown
		p2 set 3 300..310
		p3 get 2 9000..9001 stored`, nil},
	{"the same, but a third came after both", `
		p1 set 1 0..10
		p1 set 2 100..200 unknown
		p2 set 3 300..310
		p2 set 4 700..710
		p3 get 2 9000..9001 stored`, one(Stale)},
	{"an acknowledged one took effect by its deadline", `
		p1 set 1 0..9000 deadline=500
		p2 set 2 600..610
		p3 get 1 2700..2701 stored
		pause p1 0..9000`, one(Stale)},

	{"an own write is read", `
		p1 set 1 0..10
		p1 set 2 100..110
		p1 get 2 111..112 stored`, nil},
	{"an own write is not read", `
		p1 set 1 0..10
		p1 set 2 100..110
		p1 get 1 111..112 stored`, one(Forgotten)},
	{"an own write is not read, nor is a later one of another", `
		p1 set 1 0..10
		p1 set 2 100..110
		p2 set 3 700..710
		p1 get 1 900..901 stored`, one(Forgotten)},
	{"an own write is not read, but a later one of another", `
		p1 set 1 0..10
		p1 set 2 100..110
		p2 set 3 700..710
		p1 get 3 900..901 stored`, nil},
	{"a later one of another is not read, but an own write", `
		p1 set 1 0..10
		p1 set 2 100..110
		p2 set 3 700..710
		p1 get 2 900..901 stored`, nil},
	{"an own write is missing", `
		p1 set 1 0..10
		p1 set 2 100..110
		p1 get - 111..112
		p1 many - 111..112`, nil},
	{"an own write is missing, and is loaded", `
		p1 set 1 0..10
		p1 set 2 100..110
		p1 load 2 111..112 loaded`, nil},
	{"an own write is missing, and what was before it is loaded", `
		p1 set 1 0..10
		p1 set 2 100..110
		p1 load 1 111..112 loaded`, one(Forgotten)},
	{"an own removal is not seen", `
		p1 set 1 0..10
		p1 remove 2 100..110
		p1 get 1 111..112 stored`, one(Forgotten)},
	{"an own invalidation is not seen", `
		p1 set 1 0..10
		p1 invalidate 2 100..110
		p1 load-many 1 111..112 stored`, one(Forgotten)},
	{"an own write is hidden", `
		p1 remove 1 0..10
		p1 set 2 100..110
		p1 load - 111..112`, one(Forgotten)},
	{"an own write under way is not read", `
		p1 set 1 0..10
		p1 set 2 100..110
		p1 get 1 109..112 stored
		p1 get 1 110..112 stored`, nil},
	{"an own write with unknown outcome is not read", `
		p1 set 1 0..10
		p1 set 2 100..110 unknown
		p1 get 1 111..112 stored`, nil},
	{"an own write with unknown outcome is read, and then not", `
		p1 set 1 0..10
		p1 set 2 100..110 unknown
		p1 get 2 111..112 stored
		p1 get 1 113..114 stored`, nil},
	{"a write with unknown outcome lands after an own one", `
		p1 set 1 0..10 unknown
		p1 set 2 100..110
		p1 get 1 111..112 stored`, nil},
	{"a write with unknown outcome lands after its deadline, and after an own one", `
		p2 set 1 0..10 unknown
		p1 set 2 600..610
		p1 get 1 611..612 stored`, one(Forgotten)},
	{"the write of an earlier life of the process is not read", `
		p1 set 1 0..10
		p1 set 2 100..110
		p1 get 1 111..112 stored life=2`, nil},
	{"another process's write is not read", `
		p1 set 1 0..10
		p2 set 2 100..110
		p1 get 1 111..112 stored`, nil},
	{"an own write is not read, in a process that is cut off", `
		fault cut 1 p1 50..5000
		p1 set 1 0..10
		p1 set 2 100..110
		p1 get 1 3000..3001 stored`, one(Forgotten)},
	{"an own write is not read beyond the bound", `
		p1 set 1 0..10
		p1 set 2 100..110
		p1 get 1 2111..2112 stored`, one(Stale)},
	{"an own write was lost by a shard that was restored", `
		fault old 2 p0 150..400
		p1 set 1 0..10
		p1 set 2 100..110
		p1 get 1 450..451 stored`, nil},
	{"an own write was lost by a shard that was restored just before", `
		fault old 1 p0 0..50
		p1 set 1 0..10
		p1 set 2 100..110
		p1 get 1 450..451 stored`, nil},
	{"an own write is lost though no shard was restored of late", `
		fault old 1 p0 0..50
		fault old 1 p0 3100..3200
		p1 set 1 0..10
		p1 set 2 2100..2110
		p1 get 1 2200..2201 stored`, one(Forgotten)},
	{"racing writes, of which the own one is not read", `
		p1 set 1 0..10 key=2
		p1 set 2 100..110 key=2
		p1 get 1 111..112 stored key=2`, nil},

	{"a value that nobody wrote", `
		p1 set 1 0..10
		p2 get 2 100..101 stored`, one(Unwritten)},
	{"a value before it was written", `
		p1 set 1 100..110
		p2 get 1 98..99 stored`, one(Unwritten)},
	{"a value while it is written", `
		p1 set 1 100..110
		p2 get 1 98..101 stored`, nil},
	{"a deletion as a value", `
		p1 invalidate 1 100..110
		p2 get 1 200..201 stored`, one(Unwritten)},
	{"another key's value", `
		p1 set 1 0..10
		p2 get 1 100..101 foreign=other`, one(Unwritten)},
	{"a racing key's value that nobody wrote", `
		p1 set 1 0..10 key=2
		p2 get 2 100..101 stored key=2`, one(Unwritten)},
	{"a key that is none", `
		p2 get - 100..101 key=3`, one(Unwritten)},
	{"a write says that it took no effect", `
		p1 set 1 0..10 refused
		p2 load 1 100..101 loaded`, nil},
	{"a write says that it took no effect, and did", `
		p1 set 1 0..10 refused
		p2 get 1 100..101 stored`, one(RefusedIn)},

	{"racing writes end in any order", `
		p1 set 1 0..10 key=2
		p2 set 2 5..15 key=2
		p3 get 1 9000..9001 stored key=2 final
		p1 get 1 9000..9001 stored key=2 final
		p2 get - 9000..9001 key=2 final`, nil},
	{"racing writes, and no agreement", `
		p1 set 1 0..10 key=2
		p2 set 2 5..15 key=2
		p3 get 1 9000..9001 stored key=2 final
		p1 get 2 9000..9001 stored key=2 final`, one(Disagree)},
	{"disagreement before all is at rest", `
		p1 set 1 0..10 key=2
		p2 set 2 5..15 key=2
		p3 get 1 9000..9001 stored key=2
		p1 get 2 9000..9001 stored key=2`, nil},

	{"cut off, within its bound", `
		fault cut 1 p2 1000..12000
		p1 set 1 0..10
		p1 set 2 1100..1110
		p2 get 1 11110..11111 stored`, nil},
	{"cut off, beyond its bound", `
		fault cut 1 p2 1000..12000
		p1 set 1 0..10
		p1 set 2 1100..1110
		p2 get 1 11111..11112 stored`, one(Stale)},
	{"cut off until a moment ago", `
		fault cut 1 p2 1000..9000
		p1 set 1 0..10
		p1 set 2 1100..1110
		p2 get 1 11000..11001 stored`, nil},
	{"cut off until some time ago", `
		fault cut 1 p2 1000..9000
		p1 set 1 0..10
		p1 set 2 1100..1110
		p2 get 1 11001..11002 stored`, one(Stale)},
	{"somebody else is cut off", `
		fault cut 1 p2 1000..9000
		p1 set 1 0..10
		p1 set 2 1100..1110
		p3 get 1 3111..3112 stored`, one(Stale)},
	{"who was cut off writes elsewhere", `
		fault cut 1 p2 1000..9000
		p1 set 1 0..10
		p2 set 2 4000..4010
		p1 get 1 6010..6011 stored`, nil},
	{"who was cut off writes elsewhere, and it is not seen", `
		fault cut 1 p2 1000..9000
		p1 set 1 0..10
		p2 set 2 4000..4010
		p1 get 1 6011..6012 stored`, one(Stale)},
	{"cut off from another shard", `
		fault cut 2 p2 1000..9000
		p1 set 1 0..10
		p1 set 2 1100..1110
		p2 get 1 9000..9001 stored`, one(Stale)},
	{"cut off for all", `
		fault cut 1 p0 1000..9000
		p1 set 1 0..10
		p1 set 2 1100..1110
		p2 get 1 9000..9001 stored`, one(Stale)},
	{"cut off long before", `
		fault cut 1 p2 1000..2000
		p1 set 1 0..10
		p1 set 2 12100..12110
		p2 get 1 15000..15001 stored`, one(Stale)},

	{"in time", `
		p1 get - 0..2500`, nil},
	{"too late", `
		p1 get - 0..2501`, one(Late)},
	{"too late, as its process did not run", `
		p1 get - 0..5000
		pause p1 100..2700`, nil},
	{"too late, although its process did not run for a while", `
		p1 get - 0..5000
		pause p1 100..2500
		pause p2 2600..5000`, one(Late)},
	{"too late, and its process did not run, which was told twice", `
		p1 get - 0..5000
		pause p1 500..2000
		pause p1 500..2100
		pause p1 1900..2100`, one(Late)},
	{"a failed write that took too long", `
		p1 set 1 0..1001 unknown`, one(Late)},
	{"an incident", `
		incident crash`, one("crash")},
}

func TestCheck(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			h := story(t, s.story)
			got := Check(h)
			if !maps.Equal(got.ByKind, s.want) || got.OK() != (len(s.want) == 0) {
				t.Errorf("got %v, want %v: %v", got.ByKind, s.want, got.Violations)
			}
			// Written and read again, it is judged alike.
			var file bytes.Buffer
			if err := h.Write(&file); err != nil {
				t.Fatal(err)
			}
			read, err := ReadHistory(&file)
			if err != nil {
				t.Fatal(err)
			}
			if again := Check(read); fmt.Sprintf("%+v", again.Violations) != fmt.Sprintf("%+v", got.Violations) {
				t.Errorf("read from a file: got %v, want %v", again.Violations, got.Violations)
			}
		})
	}
}

// TestCheckKnowsViolations: each kind is in some story by itself.
func TestCheckKnowsViolations(t *testing.T) {
	for _, kind := range []string{Stale, Undead, Hidden, Forgotten, Unwritten, RefusedIn, Late, Disagree} {
		found := false
		for _, s := range stories {
			found = found || len(s.want) == 1 && s.want[kind] > 0
		}
		if !found {
			t.Errorf("no story has only violations of kind %q", kind)
		}
	}
}

// TestCheckWhateverTheOrder: lines of processes come in any order.
func TestCheckWhateverTheOrder(t *testing.T) {
	for _, s := range stories {
		h := story(t, s.story)
		for i := range len(h.Ops) / 2 {
			j := len(h.Ops) - 1 - i
			h.Ops[i], h.Ops[j] = h.Ops[j], h.Ops[i]
		}
		if got := Check(h); !maps.Equal(got.ByKind, s.want) {
			t.Errorf("%s: got %v, want %v", s.name, got.ByKind, s.want)
		}
	}
}

func TestReportOfCauses(t *testing.T) {
	r := Check(story(t, `
		fault swallow 1 p2 1000..2000
		p1 set 1 0..10
		p1 set 2 1100..1110
		p1 set 1 0..10 key=1
		p1 set 2 1100..1110 key=1
		p2 get 1 3000..3001 stored
		p2 get 1 4000..4001 stored
		p3 get 1 2000..2001 stored key=1`))
	want := map[string]Staleness{
		"swallow":     {Reads: 2, Beyond: 1, Largest: 2890 * time.Millisecond},
		"undisturbed": {Reads: 1, Largest: 890 * time.Millisecond},
	}
	got := map[string]Staleness{}
	for cause, s := range r.Causes {
		got[cause] = *s
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReportOfPhases(t *testing.T) {
	h := story(t, `
		fault kill 1 p0 10000..20000
		fault deafen 2 p1 30000..40000
		p1 get - 9000..9001
		p1 get - 10100..10101 unknown
		p1 get - 15000..15001
		p1 get - 15000..15001 key=2
		p1 get - 21000..21001
		p1 get - 23000..23001
		p1 get - 31000..31001 key=2
		p2 get - 31000..31001 key=2`)
	h.Shards = []ShardEvent{
		{Process: 0, At: 5e9}, {Process: 0, Healthy: true, At: 6e9},
		{Process: 0, At: 11e9}, {Process: 0, Healthy: true, At: 20.5e9},
		{Process: 1, At: 11.5e9}, {Process: 1, Healthy: true, At: 20.25e9},
		{Process: 2, Shard: 1, At: 11.5e9},
	}
	r := Check(h)
	want := map[Phase]Tally{
		Calm: {3, 3}, Detecting: {1, 0}, Out: {1, 1}, Elsewhere: {1, 1}, Returning: {1, 1}, Disturbed: {1, 1},
	}
	got := map[Phase]Tally{}
	for p, n := range r.Success[Get] {
		got[p] = *n
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if r.Detection.Worst() != 1500*time.Millisecond || r.Recovery.Worst() != 500*time.Millisecond || len(r.Detection) != 2 || len(r.Recovery) != 2 {
		t.Errorf("got detection %v and recovery %v, want two each, 1.5 s and 0.5 s at worst", r.Detection, r.Recovery)
	}
}

func TestReportsAdd(t *testing.T) {
	a, b := Check(story(t, `p1 get - 0..2501`)), Check(story(t, `
		fault kill 1 p0 0..1
		p1 get 1 0..3000 foreign=x`))
	a.Add(b)
	if a.Violated != 3 || a.ByKind[Late] != 2 || a.ByKind[Unwritten] != 1 || a.Rounds != 2 || a.Faults[Kill] != 1 || a.Ops[Get].All != 2 || a.Overrun != time.Second {
		t.Errorf("got %+v", a)
	}
}

func TestReadHistoryRefuses(t *testing.T) {
	var whole bytes.Buffer
	if err := story(t, `p1 set 1 0..10`).Write(&whole); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{
		"nothing": nil, "something else": []byte("hello"), "cut off": whole.Bytes()[:whole.Len()-12],
	} {
		if _, err := ReadHistory(bytes.NewReader(file)); err == nil || !strings.HasPrefix(err.Error(), "soak: ") {
			t.Errorf("%s: got %v, want an error of soak", name, err)
		}
	}
}
