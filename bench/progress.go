package bench

import "time"

// Phase is what a run is doing.
type Phase string

// The phases of a run, in order.
const (
	PhaseSetUp   Phase = "set-up"
	PhaseWarmUp  Phase = "warm-up"
	PhaseMeasure Phase = "measure"
	PhaseCount   Phase = "count"
	PhaseDone    Phase = "done"
)

// Progress is a glance at a run.
type Progress struct {
	Scenario string
	Phase    Phase

	// Done is the finished share of warm-up and measurement, 0 to 1. It never goes back.
	Done float64

	// ETA is how long warm-up and measurement will still take. An estimate; 0 when unknown.
	ETA time.Duration

	// Variant is the one under load, empty when operations are given to variants at random.
	Variant string

	// Ops counts the measured operations that succeeded, Errors those that failed.
	Ops, Errors int64
}

// monitor runs until stop is closed: it moves samples on, and reports.
func (r *run) monitor(stop <-chan struct{}) {
	t := time.NewTicker(monitorEvery)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			r.flush()
			r.report()
		}
	}
}

func (r *run) report() {
	if r.o.Progress == nil {
		return
	}
	p := Progress{Scenario: r.scenario.Name, Phase: *r.phase.Load(), Variant: *r.current.Load(), Ops: r.store.seen()}
	for _, f := range r.failures {
		p.Errors += f.total()
	}
	l := r.o.Load
	elapsed := r.now()
	var remaining float64
	if whole := int64(l.WarmUp + l.Duration); l.Duration > 0 {
		p.Done = float64(elapsed) / float64(whole)
		remaining = float64(whole - elapsed)
	}
	if l.Ops > 0 {
		done := float64(p.Ops+p.Errors) / float64(l.Ops)
		if done > 0 && (l.Duration == 0 || done > p.Done) {
			measuring := float64(elapsed - r.origin.Load())
			p.Done, remaining = done, measuring*(1-done)/done
		}
	}
	switch p.Phase {
	case PhaseSetUp:
		p.Done, remaining = 0, 0
	case PhaseCount, PhaseDone:
		p.Done, remaining = 1, 0
	}
	p.Done = max(r.reported, min(p.Done, 1))
	r.reported = p.Done
	p.ETA = max(time.Duration(remaining), 0)
	r.o.Progress(p)
}
