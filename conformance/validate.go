package conformance

import (
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Schema is the JSON Schema (draft 2020-12) of a report.
//
//go:embed report.schema.json
var Schema []byte

// Validate reports everything that a report must not be: what the schema refuses, and a roll-up that does not follow from
// the cases.
func (r *Report) Validate() error {
	var wrong []error
	no := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("conformance: report: "+format, args...))
	}
	if r.Format != Format {
		no("format is %q, want %q", r.Format, Format)
	}
	if r.Suite.Path == "" || r.Suite.Version == "" {
		no("suite has no path or no version")
	}
	if r.Implementation.Name == "" {
		no("implementation has no name")
	}
	if c := r.Implementation.Client; c != nil && (c.Path == "" || c.Version == "") {
		no("client has no path or no version")
	}
	if r.Servers.Provider == "" || min(r.Servers.Masters, r.Servers.Replicas, r.Servers.Shards) < 0 {
		no("servers: no provider, or a negative number of nodes")
	}
	if r.Platform.OS == "" || r.Platform.Arch == "" || r.Platform.Go == "" {
		no("platform has no os, arch or go")
	}
	if r.Time.IsZero() {
		no("time is not set")
	}
	if r.Seed == 0 || r.Seed >= 1<<53 {
		no("seed is %d, want 1 to 2^53-1", r.Seed)
	}
	seen := map[string]bool{}
	for _, c := range r.Cases {
		reasons, known := reasonsOf[c.Status]
		switch {
		case c.ID == "" || c.Name == "" || c.Requirement == "":
			no("case %q (%s) has no id, name or requirement", c.ID, c.Name)
		case seen[c.ID]:
			no("case %s is there twice", c.ID)
		case c.Level != Core && c.Level != Extended:
			no("case %s: level is %q", c.ID, c.Level)
		case !slices.Contains(Tiers, c.Tier):
			no("case %s: tier is %q", c.ID, c.Tier)
		case !known:
			no("case %s: status is %q", c.ID, c.Status)
		case !slices.Contains(reasons, c.Reason):
			no("case %s: %s has no reason %q, want one of %q", c.ID, c.Status, c.Reason, reasons)
		case c.Status != StatusPass && c.Seen == "":
			no("case %s: %s, and nothing says why", c.ID, c.Status)
		case c.Took < 0:
			no("case %s took %v s", c.ID, c.Took)
		}
		seen[c.ID] = true
	}
	var profiles []Profile
	for _, p := range r.Profiles {
		profiles = append(profiles, p.Profile)
	}
	if len(profiles) == 0 {
		no("there is no profile")
	}
	for _, c := range r.Cases {
		if !slices.Contains(profiles, c.Profile) {
			no("case %s is of profile %q, which has no roll-up", c.ID, c.Profile)
		}
	}
	if want := rollup(profiles, r.Cases); !reflect.DeepEqual(r.Profiles, want) {
		no("the roll-up is %v, the cases amount to %v", r.Profiles, want)
	}
	return errors.Join(wrong...)
}
