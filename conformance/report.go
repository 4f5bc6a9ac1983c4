package conformance

import (
	"time"
)

// A Status is what became of a case.
type Status string

const (
	StatusPass           Status = "pass"
	StatusFail           Status = "fail"            // the requirement was not met
	StatusError          Status = "error"           // something else went wrong, so nothing is known
	StatusSkipped        Status = "skipped"         // by choice
	StatusUnsupported    Status = "unsupported"     // about something that the implementation does not promise
	StatusUnavailable    Status = "unavailable"     // these servers cannot show it
	StatusKnownFailing   Status = "known-failing"   // failed, as Target.KnownFailing says it does
	StatusUnexpectedPass Status = "unexpected-pass" // passed, though Target.KnownFailing says it does not
)

// Statuses are all of them, in the order of reports.
var Statuses = []Status{
	StatusPass, StatusFail, StatusError, StatusSkipped, StatusUnsupported, StatusUnavailable, StatusKnownFailing, StatusUnexpectedPass,
}

// Bad reports whether a run with a case of this status has failed.
func (s Status) Bad() bool {
	return s == StatusFail || s == StatusError || s == StatusUnexpectedPass
}

// A Reason is a code for why a status is not a plain pass.
type Reason string

const (
	ReasonNone        Reason = ""             // pass
	ReasonRequirement Reason = "requirement"  // fail: other than the requirement was seen
	ReasonTimeout     Reason = "timeout"      // fail: the case did not come to an end
	ReasonPanic       Reason = "panic"        // fail: the backend, or the case, panicked
	ReasonSetup       Reason = "setup"        // error: the backend could not be connected, or a fault not made
	ReasonServers     Reason = "servers"      // error: the servers were not well; unavailable: they cannot do it
	ReasonNotSelected Reason = "not-selected" // skipped: by profile, tier, name or the test's -run
	ReasonInterrupted Reason = "interrupted"  // skipped: the run was ended before
	ReasonFeature     Reason = "feature"      // unsupported: the target does not promise the case's features
	ReasonNoServer    Reason = "no-server"    // unavailable: there is no server on this machine
	ReasonNotOurs     Reason = "not-ours"     // unavailable: the servers are not the suite's own to break
	ReasonKnown       Reason = "known"        // known-failing, unexpected-pass: Target.KnownFailing
)

// reasonsOf are the reasons that a status may have.
var reasonsOf = map[Status][]Reason{
	StatusPass:           {ReasonNone},
	StatusFail:           {ReasonRequirement, ReasonTimeout, ReasonPanic},
	StatusError:          {ReasonSetup, ReasonServers},
	StatusSkipped:        {ReasonNotSelected, ReasonInterrupted},
	StatusUnsupported:    {ReasonFeature},
	StatusUnavailable:    {ReasonServers, ReasonNoServer, ReasonNotOurs},
	StatusKnownFailing:   {ReasonKnown},
	StatusUnexpectedPass: {ReasonKnown},
}

// Format is what a report says of itself, and the name of its schema.
const Format = "shardkit-conformance/1"

// A Report is the outcome of a run. Its JSON is described by report.schema.json (Schema).
type Report struct {
	Format         string         `json:"format"`
	Suite          Module         `json:"suite"`
	Implementation Implementation `json:"implementation"`
	Servers        Servers        `json:"servers"`
	Platform       Platform       `json:"platform"`
	Time           time.Time      `json:"time"`
	Seed           uint64         `json:"seed"`      // below 2^53, which JSON's readers all hold
	Reproduce      string         `json:"reproduce"` // a command that does the run again
	Profiles       []Rollup       `json:"profiles"`
	Cases          []Result       `json:"cases"` // in the order in which they ran
}

// A Module is a Go module with its version, as the binary's build information or, in a test, the go command has it; "(devel)" where
// that is not known.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// An Implementation is what was checked.
type Implementation struct {
	Name   string  `json:"name"`
	Client *Module `json:"client,omitempty"`
}

// Servers are where it was checked.
type Servers struct {
	Name     string `json:"name,omitempty"` // redis, valkey; empty if no case needed any
	Version  string `json:"version,omitempty"`
	Provider string `json:"provider"` // "process: ...", "address: ...", "none"
	Masters  int    `json:"masters"`
	Replicas int    `json:"replicas"`         // of all masters together
	Shards   int    `json:"shards,omitempty"` // servers by themselves
}

// A Platform is the machine's kind.
type Platform struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	Go   string `json:"go"`
	Race bool   `json:"race"` // the race detector was on
}

// A Result is what became of one case.
type Result struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Profile     Profile `json:"profile"`
	Level       Level   `json:"level"`
	Tier        Tier    `json:"tier"`
	Requirement string  `json:"requirement"`
	Status      Status  `json:"status"`
	Reason      Reason  `json:"reason,omitempty"`
	Seen        string  `json:"seen,omitempty"`    // what was seen, or why there is no verdict
	State       string  `json:"state,omitempty"`   // of the servers, where the case failed
	Rerun       string  `json:"rerun,omitempty"`   // a command that runs the case again, where it failed
	Took        float64 `json:"seconds,omitempty"` // how long the case took
}

// A Rollup is what became of a profile.
type Rollup struct {
	Profile  Profile        `json:"profile"`
	Verdict  Verdict        `json:"verdict"`
	Core     map[Status]int `json:"core"`
	Extended map[Status]int `json:"extended"`
}

// A Verdict is what a profile's core cases amount to.
type Verdict string

const (
	Conformant    Verdict = "conformant"     // every core case passed
	NotConformant Verdict = "not-conformant" // some core case did not meet its requirement, known or not
	Incomplete    Verdict = "incomplete"     // none failed, and some were not judged
)

// Failed returns the results that make the run a failure.
func (r *Report) Failed() []Result {
	var bad []Result
	for _, c := range r.Cases {
		if c.Status.Bad() {
			bad = append(bad, c)
		}
	}
	return bad
}

// rollup sums up each profile.
func rollup(profiles []Profile, results []Result) []Rollup {
	var all []Rollup
	for _, p := range profiles {
		r := Rollup{Profile: p, Verdict: Conformant, Core: map[Status]int{}, Extended: map[Status]int{}}
		cores := 0
		for _, c := range results {
			switch {
			case c.Profile != p:
				continue
			case c.Level == Extended:
				r.Extended[c.Status]++
				continue
			}
			cores++
			r.Core[c.Status]++
			switch c.Status {
			case StatusPass, StatusUnexpectedPass:
			case StatusFail, StatusKnownFailing:
				r.Verdict = NotConformant
			default:
				if r.Verdict == Conformant {
					r.Verdict = Incomplete
				}
			}
		}
		if cores == 0 {
			r.Verdict = Incomplete
		}
		all = append(all, r)
	}
	return all
}
