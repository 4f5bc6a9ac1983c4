package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
)

// A limit of what a set takes, as Footprint tells it, lets the set pass, and one
// a little lower does not, however the server keeps the members.
func TestLimitOfWhatItTakes(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	contents := map[string][]string{"long integers": nil, "short integers": nil, "short strings": nil, "long strings": nil}
	for i := range 400 {
		contents["long integers"] = append(contents["long integers"], fmt.Sprint(-9_000_000_000_000_000_000-i))
		contents["short integers"] = append(contents["short integers"], fmt.Sprint(i))
		contents["short strings"] = append(contents["short strings"], fmt.Sprint("user-", i))
		contents["long strings"] = append(contents["long strings"], fmt.Sprint(strings.Repeat("x", 300), i))
	}
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		for what, members := range contents {
			slots := some(16)
			f, err := newSet(t, b, replset.Options{Slots: slots}).Footprint(t.Context(), members)
			if err != nil || !f.Measured {
				t.Fatalf("%s: %+v, %v", what, f, err)
			}
			if err := newSet(t, b, replset.Options{Slots: slots, MaxBytes: f.Masters * 105 / 100}).Publish(t.Context(), members); err != nil {
				t.Errorf("%s: a limit a little above what they take: %v", what, err)
			}
			var large *replset.TooLargeError
			err = newSet(t, b, replset.Options{Slots: slots, MaxBytes: f.Masters * 90 / 100}).Publish(t.Context(), []string{"before"})
			if err != nil {
				t.Fatal(err)
			}
			err = newSet(t, b, replset.Options{Slots: slots, MaxBytes: f.Masters * 90 / 100}).Publish(t.Context(), members)
			if !errors.As(err, &large) || large.Footprint.Members != len(members) {
				t.Errorf("%s: a limit a little below what they take: %v, want a *TooLargeError", what, err)
			}
			wantReplicas(t, b, newSet(t, b, replset.Options{Slots: slots}), slots, "before")
		}
	})
}
