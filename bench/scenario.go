package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Op is one operation, timed as a whole. A worker calls it again and again, never concurrently with itself.
//
// It must return soon after ctx ends: an operation that ignores ctx holds up the end of the run.
type Op func(ctx context.Context) error

// Kind is one sort of operation inside a variant, "get" and "set" for instance. Each kind has its own percentiles.
type Kind struct {
	// Name has no spaces, commas or slashes.
	Name string

	// Weight is this kind's share of the operations, relative to the variant's other kinds. Zero means 1.
	Weight int

	// Worker builds the operation of one worker, 0 to workers-1, and is called once for each before any load, from
	// one goroutine. What it captures belongs to that worker and needs no lock; what several workers or kinds share does.
	Worker func(worker int) (Op, error)
}

// Subject is a variant that has been set up: connected, filled, ready for load.
type Subject struct {
	// Kinds holds at least one kind, unless there is Batch.
	Kinds []Kind

	// Batch does operations elsewhere, in another process for instance: so many, one after the other, timed where they
	// are done. It is for a closed loop of one worker, and stands in the result as one kind, "op". An error that is not
	// an operation's own ends the run. With it, AllocsPerOp and BytesPerOp come from Counters.
	Batch func(ctx context.Context, ops int) (*Batch, error)

	// Counters may hold a source that only this variant has, its client's own statistics for instance.
	Counters CounterSource

	// TearDown undoes Setup. It is called once, after the last operation, with a context that outlives an
	// interrupted run by 10 seconds. May be nil.
	TearDown func(ctx context.Context) error
}

// Batch is what became of operations that Subject.Batch did.
type Batch struct {
	Took []time.Duration // of those that succeeded
	Errs []error         // of the others
}

// Variant is one way of doing what the scenario is about.
type Variant struct {
	// Name has no spaces, commas or slashes, and is unique in its scenario.
	Name string

	// Setup prepares the variant for the given number of workers. It is not timed.
	//
	// In a run of several variants the baseline is set up twice, and both stay up at the same time: Setup must not
	// depend on being alone.
	Setup func(ctx context.Context, workers int) (*Subject, error)
}

// Scenario is a question: how do these variants compare at this task? The first variant is the baseline that the
// others are compared with.
type Scenario struct {
	// Name has no spaces, commas or slashes.
	Name string

	// Doc says in one line what is measured.
	Doc string

	Variants []Variant
}

// Func returns a variant with one kind, named "op", whose workers all share op.
func Func(name string, op Op) Variant {
	return Variant{Name: name, Setup: func(context.Context, int) (*Subject, error) {
		return &Subject{Kinds: []Kind{{Name: "op", Worker: func(int) (Op, error) { return op, nil }}}}, nil
	}}
}

// Validate reports the first thing that would keep the scenario from running. Run calls it.
func (s Scenario) Validate() error {
	if err := checkName("scenario", s.Name); err != nil {
		return err
	}
	if len(s.Variants) == 0 {
		return fmt.Errorf("bench: scenario %q has no variants: give it at least one", s.Name)
	}
	if len(s.Variants) > maxVariants {
		return fmt.Errorf("bench: scenario %q has %d variants: split it, %d is the most in one run", s.Name, len(s.Variants), maxVariants)
	}
	seen := map[string]bool{}
	for _, v := range s.Variants {
		if err := checkName("variant", v.Name); err != nil {
			return err
		}
		if seen[v.Name] {
			return fmt.Errorf("bench: scenario %q has two variants named %q: rename one", s.Name, v.Name)
		}
		seen[v.Name] = true
		if v.Setup == nil {
			return fmt.Errorf("bench: variant %q has no Setup: give it one, or build it with bench.Func", v.Name)
		}
	}
	if twin := twinName(s.Variants[0].Name); len(s.Variants) > 1 && seen[twin] {
		return fmt.Errorf("bench: variant name %q is taken by the baseline's twin: rename it", twin)
	}
	return nil
}

const (
	maxVariants = 64
	maxKinds    = 64
	maxWeight   = 1000
)

// twinName is the name under which the baseline runs a second time, to measure what noise alone does.
func twinName(baseline string) string { return baseline + "'" }

// Names become tags of the interval log, whose fields are separated by commas, and "variant/kind" pairs.
func checkName(what, name string) error {
	bad := func(r rune) bool { return r == ',' || r == '/' || unicode.IsSpace(r) || unicode.IsControl(r) }
	switch {
	case name == "":
		return fmt.Errorf("bench: a %s has no name: give it one", what)
	case strings.ContainsFunc(name, bad):
		return fmt.Errorf("bench: %s name %q holds a space, comma, slash or control character: rename it", what, name)
	}
	return nil
}

// subject is a Subject with its operations built.
type subject struct {
	*Subject
	name string
	twin bool    // the baseline's second instance
	ops  [][]Op  // by worker, then kind
	deck []uint8 // a kind for every unit of weight, to draw from
}

func setUp(ctx context.Context, v Variant, workers int) (*subject, error) {
	s, err := v.Setup(ctx, workers)
	if err != nil {
		return nil, fmt.Errorf("bench: set up variant %q: %w", v.Name, err)
	}
	if s == nil {
		return nil, fmt.Errorf("bench: set up variant %q: Setup returned neither a subject nor an error: return one", v.Name)
	}
	sub := &subject{Subject: s, name: v.Name}
	if err := sub.build(workers); err != nil {
		return nil, errors.Join(err, sub.tearDown(ctx))
	}
	return sub, nil
}

func (s *subject) build(workers int) error {
	if s.Batch != nil {
		if len(s.Kinds) > 0 {
			return fmt.Errorf("bench: variant %q has both Batch and Kinds: leave one out", s.name)
		}
		s.Kinds, s.deck = []Kind{{Name: "op"}}, []uint8{0}
		return nil
	}
	if len(s.Kinds) == 0 || len(s.Kinds) > maxKinds {
		return fmt.Errorf("bench: variant %q has %d kinds of operation: give it 1 to %d", s.name, len(s.Kinds), maxKinds)
	}
	seen := map[string]bool{}
	divisor := 0
	for _, k := range s.Kinds {
		if err := checkName("kind", k.Name); err != nil {
			return err
		}
		if seen[k.Name] {
			return fmt.Errorf("bench: variant %q has two kinds named %q: rename one", s.name, k.Name)
		}
		seen[k.Name] = true
		if k.Weight < 0 || k.Weight > maxWeight {
			return fmt.Errorf("bench: kind %q has weight %d: use 1 to %d", k.Name, k.Weight, maxWeight)
		}
		if k.Worker == nil {
			return fmt.Errorf("bench: kind %q has no Worker: give it a function that builds the operation", k.Name)
		}
		divisor = gcd(max(k.Weight, 1), divisor)
	}
	for i, k := range s.Kinds {
		for range max(k.Weight, 1) / divisor {
			s.deck = append(s.deck, uint8(i))
		}
	}
	s.ops = make([][]Op, workers)
	for w := range s.ops {
		s.ops[w] = make([]Op, len(s.Kinds))
		for i, k := range s.Kinds {
			op, err := k.Worker(w)
			if err != nil {
				return fmt.Errorf("bench: build worker %d of variant %q, kind %q: %w", w, s.name, k.Name, err)
			}
			if op == nil {
				return fmt.Errorf("bench: build worker %d of variant %q, kind %q: neither an operation nor an error came back: return one", w, s.name, k.Name)
			}
			s.ops[w][i] = op
		}
	}
	return nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (s *subject) tearDown(ctx context.Context) error {
	if s.TearDown == nil {
		return nil
	}
	// An interrupted run must still be able to clean up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownTime)
	defer cancel()
	if err := s.TearDown(ctx); err != nil {
		return fmt.Errorf("bench: tear down variant %q: %w", s.name, err)
	}
	return nil
}
