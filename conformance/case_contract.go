package conformance

import (
	"errors"
	"strings"

	"github.com/shardkit/shardkit/replset/replsettest"
)

// contractCases are replsettest's rules: what replset.Backend says of each method, over a cluster that is well.
func contractCases() []Case {
	var cases []Case
	for _, rule := range replsettest.Rules() {
		c := Case{
			ID: rule.ID, Name: rule.Name, Requirement: rule.Text,
			Profile: Replset, Level: Core, Tier: Contract,
			Run: func(t *T) {
				err := rule.Check(t.Context(), t.Backend(), t.Prefix())
				var na *replsettest.NotApplicable
				switch {
				case errors.As(err, &na):
					t.Unavailable("%v", na)
				case err != nil:
					t.Error(err)
				}
			},
		}
		if strings.HasPrefix(rule.Name, "replica-reader") {
			c.Level, c.Features = Extended, []Feature{ReplicaReader}
		}
		cases = append(cases, c)
	}
	return cases
}
