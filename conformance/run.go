package conformance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Run runs the cases as subtests, named by their ids: a case that fails says the requirement, what was seen, how the servers were,
// and how to run it again. Cases without a verdict are skipped, with the reason; with SHARDKIT_REQUIRE_LIVE=1 in the
// environment, those that lack a server fail.
//
// If $SHARDKIT_REPORT names a file, the report is written there (Report.Write).
func Run(t *testing.T, target Target) {
	t.Helper()
	if target.Log == nil {
		target.Log = t.Logf
	}
	if target.Rerun == "" {
		target.Rerun = fmt.Sprintf("SHARDKIT_SEED={seed} go test -race -run '^%s$/^{case}' .", strings.ReplaceAll(t.Name(), "/", "$/^"))
	}
	s, err := newSuite(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("conformance: again: SHARDKIT_SEED=%d", s.Seed)
	for _, c := range s.cases {
		ran := false
		t.Run(c.ID+"-"+c.Name, func(t *testing.T) {
			ran = true
			r := s.result(t.Context(), c)
			switch {
			case r.Status.Bad(), r.Status == StatusUnavailable && r.Reason == ReasonNoServer && !s.Serverless && os.Getenv("SHARDKIT_REQUIRE_LIVE") == "1":
				t.Error(r.text())
			case r.Status != StatusPass:
				t.Skipf("%s (%s): %s", r.Status, r.Reason, r.Seen)
			}
		})
		if !ran {
			s.results = append(s.results, Result{
				ID: c.ID, Name: c.Name, Profile: c.Profile, Level: c.Level, Tier: c.Tier, Requirement: c.Requirement,
				Status: StatusSkipped, Reason: ReasonNotSelected, Seen: "not matched by -run",
			})
		}
	}
	if err := errors.Join(s.close(), s.closeShard()); err != nil {
		t.Error(err)
	}
	if file := os.Getenv("SHARDKIT_REPORT"); file != "" {
		report := s.report()
		askVersion(t, &report.Suite)
		askVersion(t, report.Implementation.Client)
		if err := report.Write(file); err != nil {
			t.Error(err)
		}
	}
}

// askVersion asks the go command for a module's version, which a test binary does not know.
func askVersion(t *testing.T, m *Module) {
	if m == nil {
		return
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", m.Path).Output()
	if version := strings.TrimSpace(string(out)); err == nil && version != "" {
		m.Version = version
	}
}

// text is a failure as an author reads it.
func (r Result) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", r.ID, r.Name, r.Status)
	if r.Reason != "" {
		fmt.Fprintf(&b, " (%s)", r.Reason)
	}
	fmt.Fprintf(&b, "\nthe requirement: %s\nseen: %s", r.Requirement, r.Seen)
	if r.State != "" {
		fmt.Fprintf(&b, "\nthe servers: %s", strings.TrimSpace(r.State))
	}
	if r.Rerun != "" {
		fmt.Fprintf(&b, "\nagain: %s", r.Rerun)
	}
	return b.String()
}
