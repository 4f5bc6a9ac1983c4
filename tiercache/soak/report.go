package soak

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Report is what Check found.
type Report struct {
	Header  Header                    `json:"header"`
	Rounds  int                       `json:"rounds"`
	Took    time.Duration             `json:"took"` // load and faults, of all rounds
	Faults  map[FaultKind]int         `json:"faults"`
	Ops     map[Kind]*Tally           `json:"ops"`
	Success map[Kind]map[Phase]*Tally `json:"success"`

	// Causes are by kind of fault, or "undisturbed".
	Causes map[string]*Staleness `json:"causes"`

	// Stopped are operations that failed for want of time, as their process did not
	// run. They are in no success rate.
	Stopped int `json:"stopped"`

	// Detection is from a fault that takes a shard away until processes count it as
	// out, Recovery from its end until they use it again; one a process, if that ran all
	// the while, and nothing more was done to the shard.
	Detection Times `json:"detection"`
	Recovery  Times `json:"recovery"`

	// Copied are the reads that copies of hot keys answered, Inherited the misses that the
	// shard before answered; of processes that lived to the end.
	Copied    uint64 `json:"copied"`
	Inherited uint64 `json:"inherited"`

	// Overrun is the most that an operation took after its deadline.
	Overrun time.Duration `json:"overrun"`

	Beyond     int            `json:"beyond"` // reads beyond the bound
	Violated   int            `json:"violated"`
	ByKind     map[string]int `json:"byKind"`
	Violations []Violation    `json:"violations,omitempty"` // the first of them
}

// A Tally counts operations, and those that did not fail.
type Tally struct {
	All int `json:"all"`
	OK  int `json:"ok"`
}

// Staleness is of reads that gave what was overwritten.
type Staleness struct {
	Reads   int           `json:"reads"`
	Beyond  int           `json:"beyond"` // the bound
	Largest time.Duration `json:"largest"`
}

// Times are durations of one sort.
type Times []time.Duration

// Median returns the middle one.
func (t Times) Median() time.Duration {
	if len(t) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(t))
	return s[len(s)/2]
}

// Worst returns the longest.
func (t Times) Worst() time.Duration {
	if len(t) == 0 {
		return 0
	}
	return slices.Max(t)
}

// A Phase is what state an operation's shard was in.
type Phase string

const (
	Calm      Phase = "calm"      // no fault on any shard
	Elsewhere Phase = "elsewhere" // faults on other shards alone
	Disturbed Phase = "disturbed" // a fault that leaves the shard usable
	Detecting Phase = "detecting" // the shard went out just before
	Out       Phase = "out"       // it is out
	Returning Phase = "returning" // it came back just before
)

// Phases are all phases.
var Phases = []Phase{Calm, Elsewhere, Disturbed, Detecting, Out, Returning}

func newReport(h *History) *Report {
	r := &Report{
		Header: h.Header, Rounds: 1, Took: h.Header.Duration,
		Faults: map[FaultKind]int{}, Ops: map[Kind]*Tally{}, Success: map[Kind]map[Phase]*Tally{},
		Causes: map[string]*Staleness{}, ByKind: map[string]int{},
	}
	for _, f := range h.Faults {
		r.Faults[f.Kind]++
	}
	for _, n := range h.Counts {
		r.Copied += n.Copied
		r.Inherited += n.Inherited
	}
	return r
}

// OK reports whether nothing was violated.
func (r *Report) OK() bool { return r.Violated == 0 }

func (c *check) count(op *Op) {
	ok := op.Outcome == OK || op.Outcome == Absent
	if !ok && c.stopped(op) {
		c.report.Stopped++
		return
	}
	tally(c.report.Ops, op.Kind, ok)
	if c.report.Success[op.Kind] == nil {
		c.report.Success[op.Kind] = map[Phase]*Tally{}
	}
	tally(c.report.Success[op.Kind], c.phase(op), ok)
}

func tally[K comparable](m map[K]*Tally, key K, ok bool) {
	t := m[key]
	if t == nil {
		t = &Tally{}
		m[key] = t
	}
	t.All++
	if ok {
		t.OK++
	}
}

func (c *check) phase(op *Op) Phase {
	phase, b := Calm, c.h.Header.Bounds
	for i := range c.h.Faults {
		f := &c.h.Faults[i]
		if f.Shard < 0 || f.Process >= 0 && f.Process != op.Process || f.Begin > op.End || op.Begin > f.End+int64(b.Lost) {
			continue
		}
		var p Phase
		switch {
		case !c.holds(f.Shard, op.Key):
			p = Elsewhere
		case !f.Kind.out():
			p = Disturbed
		case op.Begin > f.End:
			p = Returning
		case op.Begin < f.Begin+int64(b.Detect):
			p = Detecting
		default:
			p = Out
		}
		// The worst of those at one time.
		if rank(p) > rank(phase) {
			phase = p
		}
	}
	return phase
}

func rank(p Phase) int {
	return slices.Index([]Phase{Calm, Elsewhere, Disturbed, Returning, Out, Detecting}, p)
}

func (r *Report) stale(kind Kind, cause string, age time.Duration, beyond bool) {
	s := r.Causes[cause]
	if s == nil {
		s = &Staleness{}
		r.Causes[cause] = s
	}
	s.Reads++
	s.Largest = max(s.Largest, age)
	if beyond {
		s.Beyond++
		r.Beyond++
	}
}

// finish finds how long shards took to be found out, and to be used again.
func (c *check) finish() {
	for i := range c.h.Faults {
		f := &c.h.Faults[i]
		if !f.Kind.out() || f.Kind == Flap || f.Kind == Restart || f.evicts() || f.Shard == c.h.Header.Shards {
			continue // the spare shard is used when it is added again
		}
		for process := range c.h.Header.Processes {
			if f.Process >= 0 && f.Process != process {
				continue
			}
			out, back := int64(0), int64(0)
			for _, e := range c.h.Shards {
				switch {
				case e.Process != process || e.Shard != f.Shard:
				case !e.Healthy && out == 0 && e.At >= f.Begin && e.At <= f.End:
					out = e.At
				case e.Healthy && out != 0 && back == 0 && e.At >= f.End:
					back = e.At
				}
			}
			if out != 0 && c.ran(process, f.Begin, out) {
				c.report.Detection = append(c.report.Detection, time.Duration(out-f.Begin))
			}
			if back != 0 && c.ran(process, out, back) && !c.again(f, process, back) {
				c.report.Recovery = append(c.report.Recovery, time.Duration(back-f.End))
			}
		}
	}
}

// Add adds the report of another round.
func (r *Report) Add(o *Report) {
	r.Rounds += o.Rounds
	r.Took += o.Took
	for k, n := range o.Faults {
		r.Faults[k] += n
	}
	addTallies(r.Ops, o.Ops)
	for k, m := range o.Success {
		if r.Success[k] == nil {
			r.Success[k] = map[Phase]*Tally{}
		}
		addTallies(r.Success[k], m)
	}
	for cause, s := range o.Causes {
		if r.Causes[cause] == nil {
			r.Causes[cause] = &Staleness{}
		}
		t := r.Causes[cause]
		t.Reads, t.Beyond, t.Largest = t.Reads+s.Reads, t.Beyond+s.Beyond, max(t.Largest, s.Largest)
	}
	r.Detection, r.Recovery = append(r.Detection, o.Detection...), append(r.Recovery, o.Recovery...)
	r.Stopped += o.Stopped
	r.Overrun = max(r.Overrun, o.Overrun)
	r.Copied += o.Copied
	r.Inherited += o.Inherited
	r.Beyond += o.Beyond
	r.Violated += o.Violated
	for k, n := range o.ByKind {
		r.ByKind[k] += n
	}
	r.Violations = append(r.Violations, o.Violations...)
	r.Violations = r.Violations[:min(len(r.Violations), maxViolations)]
}

func addTallies[K comparable](m, o map[K]*Tally) {
	for k, t := range o {
		if m[k] == nil {
			m[k] = &Tally{}
		}
		m[k].All += t.All
		m[k].OK += t.OK
	}
}

// A table is printed as text or as Markdown.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// WriteText prints reports of the same schedule beside each other.
func WriteText(w io.Writer, reports ...*Report) error {
	for _, t := range tables(reports) {
		fmt.Fprintf(w, "\n%s\n", t.title)
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tab, "  "+strings.Join(t.head, "\t"))
		for _, row := range t.rows {
			fmt.Fprintln(tab, "  "+strings.Join(row, "\t"))
		}
		if err := tab.Flush(); err != nil {
			return err
		}
	}
	return violations(w, "\n%s: %s\n", reports)
}

// WriteMarkdown prints the same for a page.
func WriteMarkdown(w io.Writer, reports ...*Report) error {
	h := reports[0].Header
	fmt.Fprintf(w, "%d processes over %d shards of %s, client %s, %v of load and faults in %d rounds from seed %d.\n",
		h.Processes, h.Shards, h.Server, h.Client, reports[0].Took, reports[0].Rounds, h.Seed)
	for _, t := range tables(reports) {
		fmt.Fprintf(w, "\n%s\n\n| %s |\n|%s\n", t.title, strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)))
		for _, row := range t.rows {
			fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		}
	}
	return violations(w, "\n- %s: %s\n", reports)
}

func violations(w io.Writer, format string, reports []*Report) error {
	for _, r := range reports {
		if len(reports) > 1 && r.Header.Subject != Tiercache {
			continue // what is set beside it is only counted
		}
		for _, v := range r.Violations[:min(len(r.Violations), 10)] {
			if _, err := fmt.Fprintf(w, format, v.Kind, fmt.Sprintf("%.3fs: %s", v.At.Seconds(), v.Text)); err != nil {
				return err
			}
		}
	}
	return nil
}

func tables(reports []*Report) []*table {
	sum := &table{title: "Summary", head: []string{""}}
	each := func(name string, f func(*Report) string) {
		row := []string{name}
		for _, r := range reports {
			row = append(row, f(r))
		}
		sum.row(row...)
	}
	for _, r := range reports {
		sum.head = append(sum.head, r.Header.Subject)
	}
	each("operations", func(r *Report) string { return fmt.Sprint(r.ops(func(Kind) bool { return true }).All) })
	each("faults", func(r *Report) string { return fmt.Sprint(r.faults()) })
	each("reads beyond the bound", func(r *Report) string { return fmt.Sprint(r.Beyond) })
	each("largest staleness seen", func(r *Report) string { return readable(r.largest()) })
	each("reads answered", func(r *Report) string { return r.ops(func(k Kind) bool { return !k.Write() && !k.claims() }).percent() })
	each("reads with a loader answered", func(r *Report) string { return r.ops(Kind.claims).percent() })
	each("writes acknowledged", func(r *Report) string { return r.ops(Kind.Write).percent() })
	each("cut short by a stop of their process", func(r *Report) string { return fmt.Sprint(r.Stopped) })
	each("reads answered by copies", func(r *Report) string { return fmt.Sprint(r.Copied) })
	each("by the shard before", func(r *Report) string { return fmt.Sprint(r.Inherited) })
	each("found out, median and worst", func(r *Report) string { return r.Detection.String() })
	each("used again, median and worst", func(r *Report) string { return r.Recovery.String() })
	each("longest after a deadline", func(r *Report) string { return readable(r.Overrun) })
	for _, kind := range kindsOf(reports) {
		each(kind, func(r *Report) string { return fmt.Sprint(r.ByKind[kind]) })
	}

	faults := &table{title: "Faults", head: []string{"", "times"}}
	causes := &table{title: "Old values, by what went before: reads, beyond the bound, largest staleness", head: sum.head}
	success := &table{title: "Success, by the state of the key's shard (" + reports[0].Header.Subject + ")", head: []string{""}}
	r := reports[0]
	for _, k := range FaultKinds {
		if n := r.Faults[k]; n > 0 {
			faults.row(string(k), fmt.Sprint(n))
		}
	}
	names := map[string]bool{}
	for _, r := range reports {
		for name := range r.Causes {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row := []string{name}
		for _, r := range reports {
			s := cmp.Or(r.Causes[name], &Staleness{})
			row = append(row, fmt.Sprintf("%d, %d, %s", s.Reads, s.Beyond, readable(s.Largest)))
		}
		causes.row(row...)
	}
	for _, p := range Phases {
		success.head = append(success.head, string(p))
	}
	for _, k := range Kinds {
		if r.Ops[k] == nil {
			continue
		}
		row := []string{string(k)}
		for _, p := range Phases {
			row = append(row, r.Success[k][p].percent())
		}
		success.row(row...)
	}
	return []*table{sum, faults, causes, success}
}

func kindsOf(reports []*Report) []string {
	kinds := map[string]bool{}
	for _, r := range reports {
		for k := range r.ByKind {
			kinds[k] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

func (r *Report) ops(which func(Kind) bool) *Tally {
	sum := &Tally{}
	for k, t := range r.Ops {
		if which(k) {
			sum.All, sum.OK = sum.All+t.All, sum.OK+t.OK
		}
	}
	return sum
}

func (r *Report) faults() (n int) {
	for _, k := range r.Faults {
		n += k
	}
	return n
}

func (r *Report) largest() (d time.Duration) {
	for _, s := range r.Causes {
		d = max(d, s.Largest)
	}
	return d
}

func (t *Tally) percent() string {
	switch {
	case t == nil || t.All == 0:
		return "-"
	case t.OK == t.All:
		return fmt.Sprintf("100 %% of %d", t.All)
	}
	// Rounded down: one failure is not 100 %.
	return fmt.Sprintf("%.2f %% of %d", float64(10000*t.OK/t.All)/100, t.All)
}

func (t Times) String() string {
	if len(t) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s, %s of %d", readable(t.Median()), readable(t.Worst()), len(t))
}

func readable(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	return d.Round(time.Millisecond).String()
}
