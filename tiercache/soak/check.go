package soak

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"
)

// Violations, by kind. Those of an Incident have its kind.
const (
	Stale     = "stale"      // a value that was overwritten longer ago than the bound
	Undead    = "undead"     // the same of a value that was deleted
	Hidden    = "hidden"     // nothing, where there is something again since longer than the bound
	Forgotten = "forgotten"  // any of these within the bound, in the very process that overwrote it
	Unwritten = "unwritten"  // a value that nobody wrote there
	RefusedIn = "refused in" // a value of a write that said it took no effect
	Late      = "late"       // an operation ended after its deadline
	Disagree  = "disagree"   // at rest, processes have different values
)

// A Violation is one thing that must not be. Times are since the history's start.
type Violation struct {
	Kind    string        `json:"kind"`
	Key     int           `json:"key"`
	Process int           `json:"process"`
	At      time.Duration `json:"at"`
	Text    string        `json:"text"`
}

// check holds what a history's judgement needs.
type check struct {
	h      *History
	report *Report
	keys   []*keyHistory
	pauses map[int][]Pause
	moving map[int]bool
}

// keyHistory is what happened to one key.
type keyHistory struct {
	writes  []write // by version
	reads   []*Op
	settled []write // those known to have taken effect, by version
	first   []int64 // for each i, the earliest known effect of settled[i:]
	removed []write
}

// A write as far as it is known.
type write struct {
	*Op
	known int64 // when it was known to have taken effect; 0: never
}

// over is when the write cannot take effect any more.
func (w *write) over() int64 {
	if w.End != 0 {
		switch w.Outcome {
		case OK, Refused:
			return min(w.End, w.Deadline)
		}
	}
	return w.Deadline
}

// Check judges a history, whether it was just recorded or read from a file.
func Check(h *History) *Report {
	c := &check{h: h, report: newReport(h), pauses: map[int][]Pause{}, moving: map[int]bool{}}
	for _, key := range h.Header.Moving {
		c.moving[key] = true
	}
	for _, p := range slices.SortedFunc(slices.Values(h.Pauses), func(a, b Pause) int { return cmp.Compare(a.Begin, b.Begin) }) {
		list := c.pauses[p.Process]
		if n := len(list); n > 0 && p.Begin <= list[n-1].End { // told twice
			list[n-1].End = max(list[n-1].End, p.End)
			continue
		}
		c.pauses[p.Process] = append(list, p)
	}
	c.sort()
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Outcome != Begun {
			c.count(op)
			c.punctual(op)
		}
	}
	for key, k := range c.keys {
		if key < h.Header.Ordered {
			k.settle()
			for _, op := range k.reads {
				c.read(k, op)
			}
		} else {
			for _, op := range k.reads {
				c.known(k, op)
			}
		}
		c.agreement(key, k)
	}
	for _, in := range h.Incidents {
		c.violation(in.Kind, -1, in.Process, in.At, "process %d, life %d: %s", in.Process+1, in.Life+1, in.Text)
	}
	c.finish()
	return c.report
}

// sort gives each key its operations, and each write its last record.
func (c *check) sort() {
	c.keys = make([]*keyHistory, c.h.Header.Ordered+c.h.Header.Racing)
	for i := range c.keys {
		c.keys[i] = &keyHistory{}
	}
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op.Key < 0 || op.Key >= len(c.keys) {
			c.violation(Unwritten, op.Key, op.Process, op.Begin, "there is no key %d", op.Key)
			continue
		}
		k := c.keys[op.Key]
		if op.Kind.Write() {
			k.writes = append(k.writes, write{Op: op})
		} else {
			k.reads = append(k.reads, op)
		}
	}
	for _, k := range c.keys {
		slices.SortStableFunc(k.writes, func(a, b write) int {
			return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.End, b.End))
		})
		// The record of the end, where there is one, is the later of the two.
		kept := k.writes[:0]
		for i, w := range k.writes {
			if i+1 == len(k.writes) || k.writes[i+1].Version != w.Version {
				kept = append(kept, w)
			}
		}
		k.writes = kept
		slices.SortFunc(k.reads, func(a, b *Op) int { return cmp.Compare(a.End, b.End) })
	}
}

func (k *keyHistory) find(version uint64) *write {
	i, found := slices.BinarySearchFunc(k.writes, version, func(w write, v uint64) int { return cmp.Compare(w.Version, v) })
	if !found {
		return nil
	}
	return &k.writes[i]
}

// settle finds when each write was known to have taken effect: when it was
// acknowledged, or a read gave what only it could have stored.
func (k *keyHistory) settle() {
	for i := range k.writes {
		if w := &k.writes[i]; w.Outcome == OK {
			w.known = w.End
		}
	}
	for _, op := range k.reads { // by their ends
		if op.Outcome != OK || op.Loaded || op.Foreign != "" {
			continue
		}
		if w := k.find(op.Version); w != nil && w.Kind == Set && (w.known == 0 || op.End < w.known) {
			w.known = op.End
		}
	}
	for _, w := range k.writes {
		if w.known != 0 {
			k.settled = append(k.settled, w)
		}
		if w.Kind == Remove {
			k.removed = append(k.removed, w)
		}
	}
	k.first = make([]int64, len(k.settled)+1)
	k.first[len(k.settled)] = math.MaxInt64
	for i, w := range slices.Backward(k.settled) {
		k.first[i] = min(k.first[i+1], w.known)
	}
}

// after is where in settled the writes after the version begin.
func (k *keyHistory) after(version uint64) int {
	return sort.Search(len(k.settled), func(i int) bool { return k.settled[i].Version > version })
}

// overwritten returns the write that took effect after the version, and was the
// first to be known to have. over is when the version's own write was over.
func (k *keyHistory) overwritten(version uint64, over int64) (by *write) {
	i := k.after(version)
	if k.first[i] == math.MaxInt64 {
		return nil
	}
	for j := i; j < len(k.settled); j++ {
		w := &k.settled[j]
		if w.Begin < over {
			continue // at the same time: either may be the last
		}
		if by == nil || w.known < by.known {
			by = w
		}
		if by.known == k.first[j] {
			break // none after it was known earlier
		}
	}
	return by
}

// own returns the last write that overwrote the version and was acknowledged to the
// reader's process, in the same life of it, before the read began.
func (k *keyHistory) own(op *Op, version uint64, over int64) *write {
	later := k.settled[k.after(version):]
	for i := range slices.Backward(later) {
		w := &later[i]
		if w.Process == op.Process && w.Life == op.Life && w.Outcome == OK && w.Begin >= over && w.End < op.Begin {
			return w
		}
	}
	return nil
}

// known judges whether somebody wrote what a read gave.
func (c *check) known(k *keyHistory, op *Op) (w *write, fine bool) {
	if op.Outcome != OK {
		return nil, op.Outcome == Absent
	}
	w = k.find(op.Version)
	switch {
	case op.Foreign != "":
		c.violation(Unwritten, op.Key, op.Process, op.Begin, "%s gave %q, which was never written to key %d", op.Kind, op.Foreign, op.Key)
	case w == nil || w.Begin > op.End:
		c.violation(Unwritten, op.Key, op.Process, op.Begin, "%s gave version %d of key %d, which nobody had written", op.Kind, op.Version, op.Key)
	case !op.Loaded && w.Kind != Set:
		c.violation(Unwritten, op.Key, op.Process, op.Begin, "%s gave version %d of key %d as stored, which was a deletion", op.Kind, op.Version, op.Key)
	case !op.Loaded && w.Outcome == Refused:
		c.violation(RefusedIn, op.Key, op.Process, op.Begin, "%s gave version %d of key %d, whose write took no effect: %s", op.Kind, op.Version, op.Key, w.Error)
	default:
		return w, true
	}
	return nil, false
}

// read judges one read of a key whose versions are in order.
func (c *check) read(k *keyHistory, op *Op) {
	w, fine := c.known(k, op)
	if !fine {
		return
	}
	version, over, hidden := op.Version, int64(0), false
	switch {
	case op.Outcome == OK:
		if over = w.over(); op.Loaded {
			over = w.Begin // the source had it then, so later writes are later ones
		}
	case op.Kind.claims():
		// The source had nothing, at the latest when the last removal had begun that may
		// have been seen. At first it had nothing either.
		hidden = true
		i := sort.Search(len(k.removed), func(i int) bool { return k.removed[i].Begin > op.End })
		if i > 0 {
			version, over = k.removed[i-1].Version, k.removed[i-1].Begin
		}
	default:
		return // a miss is never old
	}
	by := k.overwritten(version, over)
	if by == nil || by.known >= op.Begin {
		return
	}
	age := time.Duration(op.Begin - by.known)
	cause, bound := c.cause(op, by.known)
	if localBytes(op.Process) < 0 && c.h.Header.Subject == Tiercache {
		c.report.stale(op.Kind, cause+withoutLocal, age, age > bound)
	} else {
		c.report.stale(op.Kind, cause, age, age > bound)
	}
	what := fmt.Sprintf("version %d", op.Version)
	if hidden {
		what = "nothing"
	}
	if age <= bound {
		if own := k.own(op, version, over); own != nil && !c.restored(own.End, op.Begin) {
			c.violation(Forgotten, op.Key, op.Process, op.Begin, "%s gave %s of key %d (shard-%d), %v after the %s of version %d succeeded in the same process (%s)",
				op.Kind, what, op.Key, c.owner(op.Key)+1, time.Duration(op.Begin-own.End).Round(time.Microsecond), own.Kind, own.Version, cause)
		}
		return
	}
	kind := Stale
	switch {
	case hidden:
		kind = Hidden
	case by.Kind != Set:
		kind = Undead
	}
	c.violation(kind, op.Key, op.Process, op.Begin, "%s gave %s of key %d (shard-%d), %v after the %s of version %d (process %d) was known; the bound is %v (%s)",
		op.Kind, what, op.Key, c.owner(op.Key)+1, age.Round(time.Millisecond), by.Kind, by.Version, by.Process+1, bound, cause)
}

func (c *check) owner(key int) int {
	if key < len(c.h.Header.Owners) {
		return c.h.Header.Owners[key]
	}
	return -1
}

// holds reports whether the key is on the shard, or is so at times.
func (c *check) holds(shard, key int) bool {
	return shard == c.owner(key) || shard == c.h.Header.Shards && c.moving[key]
}

// causes, by what they excuse. The kinds of faults are others.
const undisturbed = "undisturbed"

// withoutLocal is added to the cause for processes without L1. Of what they read old at most
// copies of hot keys are the reason, or shards that were out.
const withoutLocal = ", no L1"

// cause names what may have made a read old that began at op.Begin, when a write had
// been known since, and the bound that goes with it.
func (c *check) cause(op *Op, since int64) (cause string, bound time.Duration) {
	b := c.h.Header.Bounds
	cause, bound = undisturbed, b.Lost
	for i := range c.h.Faults {
		f := &c.h.Faults[i]
		lasts := b.Lost
		if f.Kind == Join {
			lasts = b.Cut
		}
		if f.Begin > op.Begin || f.End+int64(lasts) < since {
			continue
		}
		switch {
		case f.Shard >= 0 && !c.holds(f.Shard, op.Key), f.Shard < 0 && f.Process != op.Process:
			continue
		case f.Kind == Join:
			return string(f.Kind), b.Cut
		case f.partial():
			cause = string(f.Kind) + " for one"
			// Who is cut off: the others read his notes, and he soon reaches it again.
			if f.Process == op.Process && op.Begin <= f.End+int64(b.Lost) {
				return cause, b.Cut
			}
			continue
		case f.Process >= 0 && f.Process != op.Process:
			continue
		}
		cause = string(f.Kind)
	}
	return cause, bound
}

// restored reports whether some shard came back with old data between the two moments, or
// shortly before: for a while that counts, with what it held for other shards.
func (c *check) restored(since, until int64) bool {
	return slices.ContainsFunc(c.h.Faults, func(f Fault) bool {
		return f.Kind == Old && f.Begin <= until && f.End+int64(c.h.Header.Bounds.Lost) >= since
	})
}

// punctual judges whether an operation ended in time. What a process could not do
// while it did not run is not held against it.
func (c *check) punctual(op *Op) {
	if op.End == 0 || op.Deadline == 0 || op.End <= op.Deadline {
		return
	}
	late := op.End - op.Deadline
	for _, p := range c.pauses[op.Process] {
		late -= max(0, min(p.End, op.End)-max(p.Begin, op.Begin))
	}
	c.report.Overrun = max(c.report.Overrun, time.Duration(late))
	if time.Duration(late) > c.h.Header.Bounds.Margin {
		c.violation(Late, op.Key, op.Process, op.Begin, "%s ended %v after its deadline of %v: %s %s",
			op.Kind, time.Duration(late).Round(time.Millisecond), time.Duration(op.Deadline-op.Begin).Round(time.Millisecond), op.Outcome, op.Error)
	}
}

// agreement judges whether the processes found the same when all was at rest.
// One may find nothing where another still has a value that the shard evicted.
func (c *check) agreement(key int, k *keyHistory) {
	var first *Op
	for _, op := range k.reads {
		if !op.Final || op.Outcome != OK {
			continue
		}
		if first == nil {
			first = op
		}
		if op.Version != first.Version {
			c.violation(Disagree, key, op.Process, op.Begin, "at rest, process %d has version %d of key %d (shard-%d) and process %d version %d",
				first.Process+1, first.Version, key, c.owner(key)+1, op.Process+1, op.Version)
			return
		}
	}
}

// maxViolations is how many are told in full.
const maxViolations = 50

func (c *check) violation(kind string, key, process int, at int64, format string, args ...any) {
	r := c.report
	r.Violated++
	r.ByKind[kind]++
	if len(r.Violations) < maxViolations {
		r.Violations = append(r.Violations, Violation{kind, key, process, time.Duration(at - c.h.Header.Start), fmt.Sprintf(format, args...)})
	}
}
