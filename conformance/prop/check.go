package prop

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leanovate/gopter"

	"github.com/shardkit/shardkit/conformance"
)

// A trial is one case's tries of one property.
type trial struct {
	t     *conformance.T
	tries int // at most
	size  int // of the largest thing generated
	until time.Time
	done  atomic.Int64
}

// budget is how long a property is tried, so that a case ends in good time on any machine.
const budget = 20 * time.Second

func newTrial(t *conformance.T, tries, size int) *trial {
	return &trial{t: t, tries: tries, size: size, until: time.Now().Add(t.Scale(budget))}
}

// fewer is a number of tries, or one of so many of them under the race detector, which slows what computes.
func fewer(tries, ofSo int) int {
	if raceDetector {
		return (tries + ofSo - 1) / ofSo
	}
	return tries
}

// over reports whether nothing more should be tried: a property then holds without a look.
func (tr *trial) over() bool {
	return tr.t.Context().Err() != nil || time.Now().After(tr.until)
}

// check tries the property, and fails the case with the smallest counterexample found.
func (tr *trial) check(p gopter.Prop) {
	// One worker, for more are not reproducible, and a source of the case's own.
	params := gopter.DefaultTestParametersWithSeed(tr.t.Rand("gopter").Int64())
	params.MinSuccessfulTests, params.MinSize, params.MaxSize, params.MaxShrinkCount = tr.tries, 0, tr.size, 500
	result := p.Check(params)
	if result.Passed() {
		tr.t.Logf("%d tries", tr.done.Load())
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "after %d tries that held (%s): ", result.Succeeded, result.Status)
	if result.Error != nil {
		fmt.Fprintf(&b, "%v\n%s", result.Error, result.ErrorStack)
	}
	fmt.Fprint(&b, strings.Join(result.Labels, "; "))
	for _, arg := range result.Args {
		fmt.Fprintf(&b, "\n  counterexample: %s", arg.ArgFormatted)
		if arg.Shrinks > 0 {
			fmt.Fprintf(&b, "\n  shrunk %d times from: %s", arg.Shrinks, arg.OrigArgFormatted)
		}
	}
	tr.t.Fatalf("%s", b.String())
}

// generator makes a generator of random values, and of smaller ones near a value.
func generator[T any](random func(p *gopter.GenParameters) T, smaller func(v T) []T) gopter.Gen {
	shrinker := func(v any) gopter.Shrink {
		list := smaller(v.(T))
		return func() (any, bool) {
			if len(list) == 0 {
				return nil, false
			}
			v := list[0]
			list = list[1:]
			return v, true
		}
	}
	return func(p *gopter.GenParameters) *gopter.GenResult {
		return gopter.NewGenResult(random(p), shrinker)
	}
}
