package ring

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// Any key is placed, by every kind of ring, and its hash tag is the one of the definition.
func FuzzKeys(f *testing.F) {
	for _, key := range []string{"", "a", "user:42", "{user}:42", "{}", "{", "}{", "01234567{a}", "{\x00}", strings.Repeat("k", 100)} {
		f.Add(key)
	}
	var rings []*Ring
	for _, p := range placements {
		for _, tags := range []bool{false, true} {
			r := mustNew(f, Nodes(numbered(5)...), &Options{Placement: p, HashTags: tags})
			rings = append(rings, r, must(f)(r.WithDown("shard-2")))
		}
	}
	f.Fuzz(func(t *testing.T, key string) {
		tag := key
		if _, after, ok := strings.Cut(key, "{"); ok {
			if inner, _, ok := strings.Cut(after, "}"); ok && inner != "" {
				tag = inner
			}
		}
		if got := hashTag(key); got != tag {
			t.Errorf("hash tag of %q: got %q, want %q", key, got, tag)
		}
		for _, r := range rings {
			order := r.LocateN(key, 5)
			if len(slices.Compact(slices.Sorted(slices.Values(order)))) != 5-len(r.Down()) || order[0] != r.Locate(key) {
				t.Errorf("%s, %v down, key %q: Locate %q, LocateN %v", r.describe(), r.Down(), key, r.Locate(key), order)
			}
			if r.tags && r.Locate(tag) != r.Locate(key) && !strings.Contains(tag, "{") {
				t.Errorf("%s: key %q is not with its tag", r.describe(), key)
			}
		}
	})
}

// Any names and weights make a ring, or an error that says so; and a ring gives every node its part.
func FuzzNodes(f *testing.F) {
	f.Add("a,b,c", []byte{1, 1, 1})
	f.Add("a,b,a", []byte{1, 1, 1})
	f.Add(",", []byte{})
	f.Add("a,b", binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN())))
	f.Fuzz(func(t *testing.T, names string, weights []byte) {
		nodes := Nodes(strings.Split(names, ",")...)
		for i := range nodes {
			if len(weights) >= 8 {
				nodes[i].Weight = math.Float64frombits(binary.LittleEndian.Uint64(weights))
				weights = weights[8:]
			} else if len(weights) > 0 {
				nodes[i].Weight = float64(int8(weights[0])) / 8
				weights = weights[1:]
			}
		}
		for _, p := range placements {
			r, err := New(nodes, &Options{Placement: p})
			if err != nil {
				if !strings.HasPrefix(err.Error(), "ring: ") || r != nil {
					t.Errorf("%+v of %v: got %v, %v", p, nodes, r, err)
				}
				continue
			}
			total := 0.0
			for i, share := range r.Shares() {
				if total += share; share <= 0 {
					t.Errorf("%+v of %v: node %q owns nothing", p, nodes, r.Name(i))
				}
			}
			if math.Abs(total-1) > 1e-9 {
				t.Errorf("%+v of %v: shares sum to %v", p, nodes, total)
			}
			if len(r.LocateN("key", len(nodes))) != len(nodes) {
				t.Errorf("%+v of %v: LocateN names %v", p, nodes, r.LocateN("key", len(nodes)))
			}
		}
	})
}

// Whatever the way to a membership and an overlay, the ring is the one made anew.
func FuzzChanges(f *testing.F) {
	f.Add([]byte{0x00, 0x12, 0x21, 0x33, 0x40, 0x00, 0x25})
	f.Add([]byte("a longer way, with some turns"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 24 {
			steps = steps[:24]
		}
		for _, p := range placements {
			opts := &Options{Placement: p}
			r := mustNew(t, Nodes("n0"), opts)
			model := map[string]float64{"n0": 1} // name to weight
			down := map[string]bool{}
			for _, step := range steps {
				name := fmt.Sprintf("n%d", step%8)
				_, member := model[name]
				live := 0
				for n := range model {
					if !down[n] {
						live++
					}
				}
				var next *Ring
				var err error
				allowed := false
				switch step / 8 % 4 {
				case 0:
					next, err = r.With(Node{name, 1})
					if allowed = !member; allowed {
						model[name] = 1
					}
				case 1:
					next, err = r.Without(name)
					if allowed = member && (live > 1 || down[name]); allowed {
						delete(model, name)
						delete(down, name)
					}
				case 2:
					weight := float64(step/32+1) / 2
					next, err = r.WithWeight(name, weight)
					if allowed = member; allowed {
						model[name] = weight
					}
				case 3:
					next, err = r.WithDown(name)
					if allowed = member && len(model) > 1; allowed {
						clear(down)
						down[name] = true
					}
				}
				if allowed != (err == nil) {
					t.Fatalf("%+v, step %x of %x: got %v, allowed: %v", p, step, steps, err, allowed)
				}
				if err == nil {
					r = next
				}
			}
			var nodes []Node
			for name, weight := range model {
				nodes = append(nodes, Node{name, weight})
			}
			var names []string
			for name := range down {
				names = append(names, name)
			}
			want := must(t)(mustNew(t, nodes, opts).WithDown(names...))
			if !slices.Equal(r.owners, want.owners) || r.Fingerprint() != want.Fingerprint() || !slices.Equal(r.Down(), want.Down()) {
				t.Fatalf("%+v: steps %x lead to another ring than %v, %v down", p, steps, nodes, names)
			}
		}
	})
}
