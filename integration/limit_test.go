package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
)

// A limit above what a set takes, as Footprint tells it, lets the set pass, and
// one below does not, however the server keeps the members. For a hash table the
// allocator is asked, whose count moves with whatever else the server does.
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
			enough, few := f.Masters*105/100, f.Masters*90/100
			if f.Encoding == "hashtable" {
				enough, few = f.Masters*2, f.Masters/2
			}
			if err := newSet(t, b, replset.Options{Slots: slots, MaxBytes: enough}).Publish(t.Context(), members); err != nil {
				t.Errorf("%s (%s): a limit above what they take: %v", what, f.Encoding, err)
			}
			tight := newSet(t, b, replset.Options{Slots: slots, MaxBytes: few})
			publish(t, tight, "before")
			var large *replset.TooLargeError
			err = tight.Publish(t.Context(), members)
			if !errors.As(err, &large) || large.Footprint.Members != len(members) {
				t.Errorf("%s (%s): a limit below what they take: %v, want a *TooLargeError", what, f.Encoding, err)
			}
			wantReplicas(t, b, tight, slots, "before")
		}
	})
}
