package ring

import (
	"fmt"
	"testing"
)

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	key, long := "user:1234567890", "a key of more than sixty-four bytes, so that nothing fits a buffer on the stack {tag}"
	raw := []byte(key)
	for _, p := range []Placement{Table{}, Table{Exact: true}, Classic{}} {
		for _, tags := range []bool{false, true} {
			r := mustNew(t, Nodes(numbered(64)...), &Options{Placement: p, HashTags: tags})
			live := NewLive(must(t)(r.WithDown("shard-1", "shard-2")))
			dst := make([]int, 0, 64)
			loads := make([]int64, 64)
			var (
				text string
				i, n int
			)
			for _, c := range []struct {
				name string
				want float64
				call func()
			}{
				{"Locate", 0, func() { text = r.Locate(key) }},
				{"Locate of a long key", 0, func() { text = r.Locate(long) }},
				{"Locate of bytes", 0, func() { text = r.Locate(string(raw)) }},
				{"Index", 0, func() { i = r.Index(key) }},
				{"Index3", 0, func() { i, _, n = r.Index3(key) }},
				{"AppendN of 3", 0, func() { dst = r.AppendN(dst[:0], key, 3) }},
				{"AppendN of 10", 0, func() { dst = r.AppendN(dst[:0], key, 10) }},
				{"AppendN of all", 0, func() { dst = r.AppendN(dst[:0], key, 64) }},
				{"LocateN of 3", 1, func() { text = r.LocateN(key, 3)[2] }},
				{"IndexBounded", 0, func() { i, _ = r.IndexBounded(key, loads, 0.25) }},
				{"Find", 0, func() { i, _ = r.Find("shard-7") }},
				{"Live.Locate", 0, func() { text = live.Locate(key) }},
				{"Live.Snapshot", 0, func() { n = live.Snapshot().Len() }},
			} {
				if got := testing.AllocsPerRun(100, c.call); got != c.want {
					t.Errorf("%s, tags %v: %s: got %v allocations, want %v", fmt.Sprintf("%+v", p), tags, c.name, got, c.want)
				}
			}
			_, _, _ = text, i, n
		}
	}
}
