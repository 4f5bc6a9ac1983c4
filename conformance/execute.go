package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	crand "crypto/rand"

	"github.com/shardkit/shardkit/harness"
)

// Execute runs the cases and returns what became of them. The error is about the run: a target that makes no sense, or keys that
// may have been left on somebody else's servers. Cases that failed are in the report (Report.Failed). When ctx ends, the
// cases that are left are skipped, and the report is still whole.
func Execute(ctx context.Context, target Target) (Report, error) {
	s, err := newSuite(target)
	if err != nil {
		return Report{}, err
	}
	for _, c := range s.cases {
		s.result(ctx, c)
	}
	err = errors.Join(s.close(), s.closeShard())
	return s.report(), err
}

// A suite is one run.
type suite struct {
	Target
	cases   []Case
	results []Result
	started time.Time

	servers Servers
	tried   bool             // the servers were looked for
	noneYet error            // and could not be had, for this reason
	cluster *harness.Cluster // nil with servers that are somebody else's
	own     bool             // the cluster is the suite's to close
	used    bool             // keys may have been written
	shard   shardServer
	attempt string // "again:" with a case that is run once more, whose keys are others
}

func newSuite(target Target) (*suite, error) {
	target, err := target.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &suite{Target: target, started: time.Now(), servers: Servers{Provider: "none"}}
	seen := map[string]bool{}
	for _, c := range append(Cases(), target.Cases...) {
		if c.ID == "" || c.Run == nil || c.Requirement == "" || seen[c.ID] {
			return nil, fmt.Errorf("conformance: case %q (%s): it has no id, no requirement or nothing to run, or its id is taken", c.ID, c.Name)
		}
		seen[c.ID] = true
		if slices.Contains(s.Profiles, c.Profile) {
			s.cases = append(s.cases, c)
		}
	}
	slices.SortStableFunc(s.cases, func(a, b Case) int { return slices.Index(Tiers, a.Tier) - slices.Index(Tiers, b.Tier) })
	for _, name := range slices.Concat(s.Only, sortedKeys(s.KnownFailing)) {
		if !slices.ContainsFunc(s.cases, func(c Case) bool { return c.ID == name || c.Name == name }) {
			return nil, fmt.Errorf("conformance: there is no case %q in the profiles %v: REQUIREMENTS.md lists them", name, s.Profiles)
		}
	}
	return s, nil
}

// result runs one case, unless there is a reason not to, and notes what became of it.
func (s *suite) result(ctx context.Context, c Case) Result {
	r := Result{ID: c.ID, Name: c.Name, Profile: c.Profile, Level: c.Level, Tier: c.Tier, Requirement: c.Requirement}
	start := time.Now()
	var not *ending
	if ctx.Err() != nil {
		not = &ending{StatusSkipped, ReasonInterrupted, ctx.Err().Error()}
	} else if not = s.obstacle(ctx, c); not == nil {
		s.Log("%s: %s", c.ID, c.Name)
		s.run(ctx, c, &r)
		if r.Status == StatusError && c.Tier == Fault && ctx.Err() == nil {
			// Servers fail to agree on a move now and then: the fault is made once more, on others where the suite may start some.
			s.Log("%s: once more: %s", c.ID, r.Seen)
			if s.own && c.Profile != Tiercache {
				s.discard()
			}
			if s.obstacle(ctx, c) == nil {
				r.Reason, r.Seen, r.State = "", "", ""
				s.attempt = "again:"
				s.run(ctx, c, &r)
				s.attempt = ""
			}
		}
		r.Took = time.Since(start).Round(time.Millisecond).Seconds()
	}
	if not != nil {
		r.Status, r.Reason, r.Seen = not.status, not.reason, not.text
	}
	if why, known := s.KnownFailing[c.ID]; known {
		switch r.Status {
		case StatusFail:
			r.Status, r.Reason, r.Seen = StatusKnownFailing, ReasonKnown, why+"\n"+r.Seen
		case StatusPass:
			r.Status, r.Reason, r.Seen = StatusUnexpectedPass, ReasonKnown, "remove it from Target.KnownFailing: "+why
		}
	}
	if r.Status.Bad() {
		r.Rerun = s.again(c.ID)
	}
	s.results = append(s.results, r)
	s.OnResult(r)
	return r
}

// obstacle is why a case is not run.
func (s *suite) obstacle(ctx context.Context, c Case) *ending {
	if !slices.Contains(s.Tiers, c.Tier) {
		return &ending{StatusSkipped, ReasonNotSelected, fmt.Sprintf("tier %s was not asked for", c.Tier)}
	}
	if len(s.Only) > 0 && !slices.Contains(s.Only, c.ID) && !slices.Contains(s.Only, c.Name) {
		return &ending{StatusSkipped, ReasonNotSelected, "other cases were asked for"}
	}
	for _, f := range c.Features {
		if !slices.Contains(s.Features, f) {
			return &ending{StatusUnsupported, ReasonFeature, fmt.Sprintf("the target does not promise %s", f)}
		}
	}
	if c.local() {
		return nil
	}
	if c.Tier == Fault && len(s.Addrs) > 0 {
		return &ending{StatusUnavailable, ReasonNotOurs, "the servers are somebody else's, and are not broken"}
	}
	if s.Serverless && (c.Tier == Live || c.Tier == Fault) {
		return &ending{StatusUnavailable, ReasonNoServer, "the target has no servers"}
	}
	open := s.open
	if c.Profile == Tiercache {
		open = s.openShard
	}
	if err := open(ctx); err != nil {
		if errors.Is(err, harness.ErrNoServer) {
			return &ending{StatusUnavailable, ReasonNoServer, err.Error()}
		}
		return &ending{StatusError, ReasonServers, err.Error()}
	}
	return nil
}

// grace is how long a case that was told to end may take to do so.
const grace = 5 * time.Second

// run runs the case in a goroutine, so that a backend which hangs or panics fails its case and not the whole run.
func (s *suite) run(ctx context.Context, c Case, r *Result) {
	limit := s.scale(c.Tier.time())
	caseCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := &T{ctx: caseCtx, suite: s, c: c}
	var panicked string
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.cleanup()
		defer func() {
			if v := recover(); v != nil {
				panicked = fmt.Sprintf("panicked: %v\n%s", v, debug.Stack())
			}
		}()
		c.Run(t)
	}()
	hung := ""
	select {
	case <-done:
	case <-caseCtx.Done():
		stacks := stacksOf(c)
		over := time.NewTimer(s.scale(grace))
		select {
		case <-done:
		case <-over.C:
			hung = fmt.Sprintf("it did not return within %v of being told to end, after %v; where it hangs:\n%s", s.scale(grace), limit, stacks)
		}
		over.Stop()
	}
	if hung == "" {
		t.judge(ctx, limit, panicked, r)
	} else {
		r.Status, r.Reason, r.Seen = StatusFail, ReasonTimeout, hung
	}
	if r.Status.Bad() {
		if r.State = s.state(); c.Profile == Tiercache {
			r.State = s.shardState()
		}
	}
	switch {
	case c.Tier == Fault && c.Profile == Tiercache:
		s.mendShard(r, hung != "")
	case c.Tier == Fault:
		s.mend(r, hung != "")
	}
}

// judge turns what a case that has ended said into its status.
func (t *T) judge(ctx context.Context, limit time.Duration, panicked string, r *Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := strings.Join(append(t.failures, t.notes...), "\n")
	switch {
	case panicked != "":
		r.Status, r.Reason, r.Seen = StatusFail, ReasonPanic, panicked
	case ctx.Err() != nil:
		r.Status, r.Reason, r.Seen = StatusSkipped, ReasonInterrupted, ctx.Err().Error()
	case t.ended != nil && t.ended.status == StatusError: // what was seen after that tells nothing
		r.Status, r.Reason, r.Seen = StatusError, t.ended.reason, t.ended.text+"\n"+seen
	case len(t.failures) > 0 && t.ctx.Err() != nil:
		r.Status, r.Reason, r.Seen = StatusFail, ReasonTimeout, fmt.Sprintf("it was ended after %v\n%s", limit, seen)
	case len(t.failures) > 0:
		r.Status, r.Reason, r.Seen = StatusFail, ReasonRequirement, seen
	case t.ended != nil:
		r.Status, r.Reason, r.Seen = t.ended.status, t.ended.reason, t.ended.text
	case t.ctx.Err() != nil:
		r.Status, r.Reason, r.Seen = StatusFail, ReasonTimeout, fmt.Sprintf("it was ended after %v", limit)
	default:
		r.Status = StatusPass
	}
}

func (t *T) cleanup() {
	for {
		t.mu.Lock()
		n := len(t.cleanups)
		if n == 0 {
			t.mu.Unlock()
			return
		}
		f := t.cleanups[n-1]
		t.cleanups = t.cleanups[:n-1]
		t.mu.Unlock()
		f()
	}
}

func (s *suite) scale(d time.Duration) time.Duration { return time.Duration(float64(d) * s.Slack) }

// freshSeed is below 2^53.
func freshSeed() uint64 { return 1 + rand.Uint64()>>12 }

func randomWord() string { return strings.ToLower(crand.Text()[:8]) }

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
