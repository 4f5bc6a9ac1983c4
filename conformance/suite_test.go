package conformance

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/tiercache"
	shardmemory "github.com/shardkit/shardkit/tiercache/memory"
)

// own is a target whose cases are given: none of the suite's is run.
func own(cases ...Case) Target {
	t := Target{Name: "own", Serverless: true, Slack: 0.02, Profiles: []Profile{Slots}, Rerun: "again --case {case} --seed {seed}", Backend: inMemory}
	for i := range cases {
		c := &cases[i]
		c.ID, c.Requirement, c.Profile, c.Level, c.Tier = "T-"+c.Name, "what "+c.Name+" is about", Slots, Core, Contract
		t.Only = append(t.Only, c.ID)
	}
	t.Cases = cases
	return t
}

func inMemory(context.Context, Connection) (replset.Backend, func(), error) {
	return memory.New(), nil, nil
}

func inMemoryShard(context.Context, Connection) (tiercache.Shard, func(), error) {
	return shardmemory.New(nil), nil, nil
}

func execute(t *testing.T, target Target) (Report, map[string]Result) {
	t.Helper()
	report, err := Execute(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Validate(); err != nil {
		t.Error(err)
	}
	byName := map[string]Result{}
	for _, r := range report.Cases {
		byName[r.Name] = r
	}
	return report, byName
}

// Each way in which a case may end has its status and its reason.
func TestHowCasesEnd(t *testing.T) {
	hanging := make(chan struct{})
	target := own(
		Case{Name: "passes", Run: func(*T) {}},
		Case{Name: "fails", Run: func(t *T) { t.Errorf("saw %d", 7); t.Logf("and a note") }},
		Case{Name: "fails-at-once", Run: func(t *T) { t.Fatalf("saw this"); t.Errorf("never") }},
		Case{Name: "panics", Run: func(*T) { panic("oh") }},
		Case{Name: "is-slow", Run: func(t *T) { <-t.Context().Done() }},
		Case{Name: "hangs", Run: func(*T) { <-hanging }},
		Case{Name: "is-unsupported", Run: func(t *T) { t.Unsupported("no such thing") }},
		Case{Name: "is-unavailable", Run: func(t *T) { t.Unavailable("not here") }},
		Case{Name: "is-broken", Run: func(t *T) { t.Errorf("an effect"); t.Broken("no fault") }},
		Case{Name: "has-no-servers", Run: func(t *T) { t.Cluster() }},
		Case{Name: "known", Run: func(t *T) { t.Fatalf("as ever") }},
		Case{Name: "known-no-more", Run: func(*T) {}},
		Case{Name: "needs-a-feature", Features: []Feature{"flight"}, Run: func(*T) {}},
	)
	target.KnownFailing = map[string]string{"T-known": "https://example.com/1", "T-known-no-more": "https://example.com/2"}
	target.Seed = 42
	report, got := execute(t, target)
	close(hanging)
	for name, want := range map[string]struct {
		status Status
		reason Reason
		seen   string
	}{
		"passes":          {StatusPass, "", ""},
		"fails":           {StatusFail, ReasonRequirement, "saw 7\nand a note"},
		"fails-at-once":   {StatusFail, ReasonRequirement, "saw this"},
		"panics":          {StatusFail, ReasonPanic, "panicked: oh"},
		"is-slow":         {StatusFail, ReasonTimeout, "ended after"},
		"hangs":           {StatusFail, ReasonTimeout, "TestHowCasesEnd"}, // the stack
		"is-unsupported":  {StatusUnsupported, ReasonFeature, "no such thing"},
		"is-unavailable":  {StatusUnavailable, ReasonServers, "not here"},
		"is-broken":       {StatusError, ReasonSetup, "no fault"},
		"has-no-servers":  {StatusUnavailable, ReasonNotOurs, "not the suite's own"},
		"known":           {StatusKnownFailing, ReasonKnown, "https://example.com/1\nas ever"},
		"known-no-more":   {StatusUnexpectedPass, ReasonKnown, "https://example.com/2"},
		"needs-a-feature": {StatusUnsupported, ReasonFeature, "flight"},
		"hash-tag":        {StatusSkipped, ReasonNotSelected, "other cases"},
	} {
		r := got[name]
		if r.Status != want.status || r.Reason != want.reason || !strings.Contains(r.Seen, want.seen) || strings.Contains(r.Seen, "never") {
			t.Errorf("%s: got %s (%s) %q, want %s (%s) with %q", name, r.Status, r.Reason, r.Seen, want.status, want.reason, want.seen)
		}
		if rerun := "again --case T-" + name + " --seed 42"; r.Status.Bad() != (r.Rerun == rerun) {
			t.Errorf("%s: %s has the rerun command %q", name, r.Status, r.Rerun)
		}
	}
	if report.Reproduce != "again --seed 42" {
		t.Errorf("the report says to reproduce it by %q", report.Reproduce)
	}
	if v := report.Profiles[0].Verdict; v != NotConformant {
		t.Errorf("the verdict is %s, want %s", v, NotConformant)
	}
	text := got["fails"].text()
	for _, part := range []string{"what fails is about", "saw 7", "in process", "again --case T-fails"} {
		if !strings.Contains(text, part) && part != "in process" {
			t.Errorf("the failure lacks %q:\n%s", part, text)
		}
	}
}

// What was given out for a case is taken back, last first, however the case ends.
func TestCleanup(t *testing.T) {
	var order []string
	var closed atomic.Int32
	target := own(Case{Name: "fails", Run: func(t *T) {
		t.Cleanup(func() { order = append(order, "first") })
		t.Backend()
		t.Cleanup(func() { order = append(order, "last") })
		t.Fatalf("over")
	}})
	target.Backend = func(context.Context, Connection) (replset.Backend, func(), error) {
		return memory.New(), func() { closed.Add(1) }, nil
	}
	execute(t, target)
	if fmt.Sprint(order) != "[last first]" || closed.Load() != 1 {
		t.Errorf("cleanups ran as %v, the client was closed %d times", order, closed.Load())
	}
}

// A client that gave its connection up, so slow was the machine, is made anew.
func TestBackendThatIsSlowToConnect(t *testing.T) {
	for name, late := range map[string]error{"its context": context.DeadlineExceeded, "the network": os.ErrDeadlineExceeded} {
		tries := 0
		target := own(Case{Name: "connects", Run: func(t *T) { t.Backend() }})
		target.Slack = 1
		target.Backend = func(context.Context, Connection) (replset.Backend, func(), error) {
			if tries++; tries < 4 {
				return nil, nil, fmt.Errorf("connecting: %w", late)
			}
			return memory.New(), nil, nil
		}
		if _, got := execute(t, target); got["connects"].Status != StatusPass || tries != 4 {
			t.Errorf("late by %s: got %+v after %d tries", name, got["connects"], tries)
		}
	}
}

func TestBackendThatCannotConnect(t *testing.T) {
	target := own(Case{Name: "connects", Run: func(t *T) { t.Backend() }}, Case{Name: "connects-to-nothing", Run: func(t *T) { t.Backend() }})
	target.Backend = func(_ context.Context, c Connection) (replset.Backend, func(), error) {
		return nil, nil, errors.New("no route")
	}
	_, got := execute(t, target)
	if r := got["connects"]; r.Status != StatusError || r.Reason != ReasonSetup || !strings.Contains(r.Seen, "no route") {
		t.Errorf("got %+v", r)
	}
}

// A run that is ended still has a whole report.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	target := own(
		Case{Name: "is-ended", Run: func(t *T) { cancel(); <-t.Context().Done() }},
		Case{Name: "is-next", Run: func(t *T) { t.Errorf("ran") }},
	)
	report, err := Execute(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Validate(); err != nil {
		t.Error(err)
	}
	for _, r := range report.Cases {
		if strings.HasPrefix(r.ID, "T-") && (r.Status != StatusSkipped || r.Reason != ReasonInterrupted) {
			t.Errorf("%s: %s (%s), want skipped (interrupted)", r.ID, r.Status, r.Reason)
		}
	}
	if len(report.Cases) != len(slotCases)+2 {
		t.Errorf("the report has %d cases", len(report.Cases))
	}
}

// The same seed gives the same random input, another one another.
func TestSeed(t *testing.T) {
	draw := func(seed uint64) (n uint64) {
		target := own(Case{Name: "draws", Run: func(t *T) { n = t.Rand().Uint64() }})
		target.Seed = seed
		execute(t, target)
		return n
	}
	if a, b, c := draw(5), draw(5), draw(6); a != b || a == c {
		t.Errorf("seed 5 drew %d and %d, seed 6 %d", a, b, c)
	}
	t.Setenv("SHARDKIT_SEED", "77")
	if report, _ := execute(t, own()); report.Seed != 77 {
		t.Errorf("SHARDKIT_SEED=77 gave the seed %d", report.Seed)
	}
}

func TestTargetsThatMakeNoSense(t *testing.T) {
	ok := Case{ID: "T-1", Name: "x", Requirement: "y", Profile: Slots, Run: func(*T) {}}
	for name, target := range map[string]Target{
		"no name":               {},
		"addresses and none":    {Name: "x", Addrs: []string{"h:1"}, Serverless: true},
		"no backend":            {Name: "x", Profiles: []Profile{Replset}},
		"no ring":               {Name: "x", Profiles: []Profile{Ring}},
		"no shard":              {Name: "x", Profiles: []Profile{Tiercache}},
		"two shards":            {Name: "x", Profiles: []Profile{Tiercache}, Shard: inMemoryShard, Addrs: []string{"h:1", "h:2"}},
		"a cluster and a shard": {Name: "x", Profiles: []Profile{Slots, Tiercache}, Shard: inMemoryShard, Addrs: []string{"h:1"}},
		"no such profile":       {Name: "x", Profiles: []Profile{"slot"}},
		"no such tier":          {Name: "x", Tiers: []Tier{"contracts"}},
		"no such case":          {Name: "x", Only: []string{"RS-999"}},
		"no such known failure": {Name: "x", KnownFailing: map[string]string{"RS-999": "gone"}},
		"an id twice":           {Name: "x", Cases: []Case{ok, ok}},
		"a taken id":            {Name: "x", Cases: []Case{{ID: "SL-001", Name: "x", Requirement: "y", Profile: Slots, Run: func(*T) {}}}},
		"an unfit prefix":       {Name: "x", Prefix: "a{b}*"},
		"a short prefix":        {Name: "x", Prefix: "a"},
		"a negative slack":      {Name: "x", Slack: -1},
		"a seed beyond JSON":    {Name: "x", Seed: 1 << 53},
	} {
		if report, err := Execute(t.Context(), target); err == nil || !strings.HasPrefix(err.Error(), "conformance: ") {
			t.Errorf("%s: got %d cases, %v, want an error", name, len(report.Cases), err)
		}
	}
}

// REQUIREMENTS.md is what the cases say.
func TestRequirementsAreCurrent(t *testing.T) {
	page, err := os.ReadFile("REQUIREMENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != Requirements(Cases()) {
		t.Error("REQUIREMENTS.md is out of date: run go generate")
	}
}

func TestCases(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Cases() {
		name := string(c.Profile) + "/" + c.Name
		if names[name] || c.Name != strings.ToLower(c.Name) || strings.Contains(c.Name, " ") {
			t.Errorf("%s: the name %q is taken, or not of lower-case words", c.ID, c.Name)
		}
		names[name] = true
		if c.Level == Extended && len(c.Features) == 0 || c.Level == Core && len(c.Features) > 0 {
			t.Errorf("%s is %s, with the features %v", c.ID, c.Level, c.Features)
		}
	}
}

// A report is read back as it was written, and its three forms agree on the counts.
func TestReportForms(t *testing.T) {
	target := own(
		Case{Name: "passes", Run: func(*T) {}},
		Case{Name: "fails", Run: func(t *T) { t.Errorf("bytes \x00\xff and ]]> and ``` and |") }},
		Case{Name: "is-broken", Run: func(t *T) { t.Broken("no fault") }},
	)
	target.Client = "go.uber.org/goleak"
	report, _ := execute(t, target)
	file := filepath.Join(t.TempDir(), "report.json")
	if err := report.Write(file); err != nil {
		t.Fatal(err)
	}
	back, err := ReadReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := Differences(&report, &back); d != nil || back.Implementation.Client.Version != report.Implementation.Client.Version || back.Seed != report.Seed {
		t.Errorf("read back: %v, %+v", d, back.Implementation)
	}
	if askVersion(t, report.Implementation.Client); !strings.HasPrefix(report.Implementation.Client.Version, "v1.") {
		t.Errorf("the client is %+v, want its version", *report.Implementation.Client)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Name string `xml:"name,attr"`
		} `xml:"testcase"`
	}
	text, err := os.ReadFile(strings.TrimSuffix(file, "json") + "xml")
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(text, &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != len(report.Cases) || len(suite.Cases) != suite.Tests || suite.Failures != 1 || suite.Errors != 1 || suite.Skipped != len(slotCases) {
		t.Errorf("the XML counts %+v", suite)
	}
	page, err := os.ReadFile(strings.TrimSuffix(file, "json") + "md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"| T-fails | fails | core | contract | fail (requirement) |", "1 pass, 1 fail, 1 error", "not-conformant"} {
		if !strings.Contains(string(page), part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
}

// Validate refuses what is no report.
func TestValidate(t *testing.T) {
	good, _ := execute(t, own(Case{Name: "passes", Run: func(*T) {}}, Case{Name: "fails", Run: func(t *T) { t.Errorf("x") }}))
	for name, spoil := range map[string]func(r *Report){
		"format":           func(r *Report) { r.Format = "shardkit-conformance/2" },
		"no seed":          func(r *Report) { r.Seed = 0 },
		"no time":          func(r *Report) { r.Time = time.Time{} },
		"no name":          func(r *Report) { r.Implementation.Name = "" },
		"no provider":      func(r *Report) { r.Servers.Provider = "" },
		"no profile":       func(r *Report) { r.Profiles = nil },
		"prettier roll-up": func(r *Report) { r.Profiles[0].Verdict = Conformant },
		"other counts":     func(r *Report) { r.Profiles[0].Core[StatusPass]++ },
		"a case twice":     func(r *Report) { r.Cases = append(r.Cases, r.Cases[0]) },
		"no such status":   func(r *Report) { r.Cases[0].Status = "passed" },
		"no such tier":     func(r *Report) { r.Cases[0].Tier = "unit" },
		"no such level":    func(r *Report) { r.Cases[0].Level = "must" },
		"reason of a pass": func(r *Report) { r.Cases[at(r, "passes")].Reason = ReasonKnown },
		"a wrong reason":   func(r *Report) { r.Cases[at(r, "fails")].Reason = ReasonFeature },
		"an unsaid why":    func(r *Report) { r.Cases[at(r, "fails")].Seen = "" },
	} {
		text, err := json.Marshal(good)
		if err != nil {
			t.Fatal(err)
		}
		var r Report
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("%s: before: %v", name, err)
		}
		if spoil(&r); r.Validate() == nil {
			t.Errorf("%s: Validate finds nothing wrong", name)
		}
	}
	file := filepath.Join(t.TempDir(), "unknown.json")
	if err := os.WriteFile(file, []byte(`{"format": "shardkit-conformance/1", "mood": "good"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadReport(file); err == nil || !strings.Contains(err.Error(), "mood") {
		t.Errorf("a report with an unknown field: %v", err)
	}
}

func at(r *Report, name string) int {
	return slices.IndexFunc(r.Cases, func(c Result) bool { return c.Name == name })
}

func TestDifferences(t *testing.T) {
	was := Report{Cases: []Result{{ID: "A", Status: StatusPass}, {ID: "B", Status: StatusPass}, {ID: "C", Status: StatusFail}}}
	is := Report{Cases: []Result{{ID: "A", Status: StatusPass}, {ID: "B", Status: StatusFail}, {ID: "D", Status: StatusPass}}}
	if got := strings.Join(Differences(&was, &is), "; "); got != "B: was pass, is fail; C: was fail, is not there; D: is new: pass" {
		t.Errorf("got %s", got)
	}
}
