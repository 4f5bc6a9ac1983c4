package conformance

import (
	"fmt"
	"strings"
)

//go:generate go run ./internal/requirements REQUIREMENTS.md

// Requirements returns the cases as a page for people, as it stands in REQUIREMENTS.md.
func Requirements(cases []Case) string {
	var b strings.Builder
	b.WriteString("<!-- Generated from the cases by go generate. -->\n# What is required\n\n")
	b.WriteString("Each line is a case of the suite. *core* binds whoever claims the profile, *extended* whoever promises the feature.\n")
	b.WriteString("Tiers: *contract* one call and its answer, *property* random input against a model, *live* whole operations on real servers,\n*fault* servers broken on purpose.\n")
	for _, p := range []struct {
		profile Profile
		about   string
	}{
		{Slots, "which slot a key is in, and the tag that names a slot"},
		{Replset, "what a replicated set asks of a Redis Cluster client"},
		{Ring, "placement of keys on independent nodes"},
		{Tiercache, "what a cache asks of a client of one Redis server"},
	} {
		fmt.Fprintf(&b, "\n## Profile %s: %s\n\n| id | name | level | tier | requirement |\n|---|---|---|---|---|\n", p.profile, p.about)
		for _, c := range cases {
			if c.Profile != p.profile {
				continue
			}
			level := string(c.Level)
			for _, f := range c.Features {
				level += ", " + string(f)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.ID, c.Name, level, c.Tier, strings.ReplaceAll(c.Requirement, "|", `\|`))
		}
	}
	return b.String()
}
