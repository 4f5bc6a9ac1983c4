package ring

import (
	"fmt"
	"slices"
	"testing"
)

func TestLocateN(t *testing.T) {
	rnd := random(t)
	for _, p := range placements {
		for _, nodes := range []int{1, 2, 3, 4, 10, 70} {
			r := mustNew(t, Nodes(randomNames(rnd, nodes)...), &Options{Placement: p})
			for range times(1000) {
				key := fmt.Sprintf("key-%d", rnd.Uint32())
				all := r.LocateN(key, nodes)
				if sorted := slices.Sorted(slices.Values(all)); len(slices.Compact(sorted)) != nodes {
					t.Fatalf("%+v, %d nodes, key %q: %v are not distinct", p, nodes, key, all)
				}
				if all[0] != r.Locate(key) || all[0] != r.Name(r.Index(key)) {
					t.Fatalf("%+v, key %q: LocateN begins with %q, Locate says %q", p, key, all[0], r.Locate(key))
				}
				for n := range nodes + 3 {
					if got := r.LocateN(key, n); !slices.Equal(got, all[:min(n, nodes)]) {
						t.Fatalf("%+v, key %q: got %v for %d, want a prefix of %v", p, key, got, n, all)
					}
				}
				want := [3]int{-1, -1, -1}
				for i, name := range all[:min(3, nodes)] {
					want[i], _ = r.Find(name)
				}
				a, b, c := r.Index3(key)
				if got := [3]int{a, b, c}; got != want {
					t.Fatalf("%+v, key %q: Index3 is %v, want %v", p, key, got, want)
				}
			}
		}
	}
}

func TestLocateNOfNothing(t *testing.T) {
	r := mustNew(t, Nodes("a", "b"), nil)
	for _, n := range []int{0, -1} {
		if got := r.LocateN("key", n); got != nil {
			t.Errorf("LocateN(%d): got %v, want nil", n, got)
		}
		if got := r.AppendN([]int{7}, "key", n); !slices.Equal(got, []int{7}) {
			t.Errorf("AppendN(%d): got %v, want what was there", n, got)
		}
	}
	if got := r.AppendN([]int{7}, "key", 1<<30); len(got) != 3 || got[0] != 7 {
		t.Errorf("AppendN(1<<30): got %v, want both nodes after 7", got)
	}
}

func TestNodes(t *testing.T) {
	r := mustNew(t, []Node{{"b", 2}, {"a", 1}}, nil)
	if got := r.Nodes(); !slices.Equal(got, []Node{{"a", 1}, {"b", 2}}) || r.Len() != 2 || r.Name(1) != "b" {
		t.Errorf("got %v, want a and b in order", got)
	}
	for name, want := range map[string]int{"a": 0, "b": 1} {
		if i, ok := r.Find(name); i != want || !ok {
			t.Errorf("Find(%q): got %d, %v, want %d", name, i, ok, want)
		}
	}
	for _, name := range []string{"", "0", "aa", "c"} {
		if _, ok := r.Find(name); ok {
			t.Errorf("Find(%q): got a node", name)
		}
	}
}

// Whether near nodes were found before changes no answer, and neither does finding them from many goroutines.
func TestTriosFromManyGoroutines(t *testing.T) {
	for _, p := range placements {
		r := mustNew(t, Nodes(numbered(9)...), &Options{Placement: p})
		answers := make(chan [][3]int)
		for range 4 {
			go func() {
				var got [][3]int
				for i := range 3000 {
					a, b, c := r.Index3(fmt.Sprintf("key-%d", i))
					got = append(got, [3]int{a, b, c})
				}
				answers <- got
			}()
		}
		first := <-answers
		for range 3 {
			if got := <-answers; !slices.Equal(got, first) {
				t.Fatalf("%+v: two goroutines got two answers", p)
			}
		}
	}
}

func TestHashTags(t *testing.T) {
	for _, c := range []struct{ key, hashed string }{
		{"{user1000}.following", "user1000"},
		{"foo{}{bar}", "foo{}{bar}"},
		{"foo{{bar}}zap", "{bar"},
		{"foo{bar}{zap}", "bar"},
		{"{}", "{}"}, {"{", "{"}, {"}", "}"}, {"", ""}, {"}{", "}{"},
		{"{a}", "a"}, {"a{b", "a{b"}, {"a}b{c}", "c"},
		{"0123456{", "0123456{"}, {"0123456{a}", "a"}, {"{a}4567", "a"}, {"0123456789012{a}", "a"}, {"01234567{a}12345", "a"},
		{"01234567890123{a}", "a"}, {"z{\xfb\xff}\x80", "\xfb\xff"}, {"\xfb\xff\x80|}z~\x00", "\xfb\xff\x80|}z~\x00"},
	} {
		if got := hashTag(c.key); got != c.hashed {
			t.Errorf("%q: got %q, want %q", c.key, got, c.hashed)
		}
	}
	for _, p := range placements {
		r := mustNew(t, Nodes(numbered(50)...), &Options{Placement: p, HashTags: true})
		without := mustNew(t, Nodes(numbered(50)...), &Options{Placement: p})
		for i := range 100 {
			tag := fmt.Sprintf("%d", i)
			want := without.LocateN(tag, 3)
			if got := r.LocateN("user:{"+tag+"}:name", 3); !slices.Equal(got, want) {
				t.Fatalf("%+v, tag %s: got %v, want %v", p, tag, got, want)
			}
			if got := r.Locate(tag); got != want[0] {
				t.Fatalf("%+v, key %s: got %v, want %v", p, tag, got, want[0])
			}
		}
		if r.Fingerprint() == without.Fingerprint() {
			t.Errorf("%+v: one fingerprint with and without hash tags", p)
		}
	}
}
