package ring

import (
	"fmt"
	"testing"
)

// Whatever places keys otherwise has another fingerprint.
func TestFingerprint(t *testing.T) {
	seen := map[uint64]string{}
	for _, c := range []struct {
		nodes []Node
		opts  Options
	}{
		{Nodes("a", "b", "c"), Options{}},
		{Nodes("a", "b"), Options{}},
		{Nodes("a", "bc"), Options{}},
		{Nodes("ab", "c"), Options{}},
		{[]Node{{"a", 1}, {"b", 1}, {"c", 1.0000000000000002}}, Options{}},
		{Nodes("a", "b", "c"), Options{HashTags: true}},
		{Nodes("a", "b", "c"), Options{Placement: Table{Exact: true}}},
		{Nodes("a", "b", "c"), Options{Placement: Table{Buckets: 1 << 17}}},
		{Nodes("a", "b", "c"), Options{Placement: Classic{}}},
		{Nodes("a", "b", "c"), Options{Placement: Classic{VirtualNodes: 151}}},
	} {
		what := fmt.Sprintf("%v %+v", c.nodes, c.opts)
		got := mustNew(t, c.nodes, &c.opts).Fingerprint()
		if other, ok := seen[got]; ok {
			t.Errorf("one fingerprint for %s and %s", what, other)
		}
		seen[got] = what
	}
	// And what does not, has not.
	for _, c := range []struct {
		a, b *Options
	}{
		{nil, &Options{}},
		{nil, &Options{Placement: Table{}}},
		{nil, &Options{Placement: Table{Buckets: 1 << 16}}},
		{nil, &Options{Placement: &Table{}}},
		{&Options{Placement: Classic{}}, &Options{Placement: Classic{VirtualNodes: 150}}},
	} {
		a, b := mustNew(t, Nodes("a", "b"), c.a), mustNew(t, Nodes("b", "a"), c.b)
		if a.Fingerprint() != b.Fingerprint() {
			t.Errorf("%+v and %+v: two fingerprints for one ring", c.a, c.b)
		}
	}
}
