package ring

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"
)

// manyKeys returns n keys of the given length.
func manyKeys(n, length int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%0*d", length, uint64(i)*7919%999_999_937)[:length]
	}
	return keys
}

// shortest returns how long each call takes at best, in ns. The calls alternate, so that what else the machine does meets all.
func shortest(rounds int, calls ...func()) []float64 {
	best := make([]float64, len(calls))
	for i := range best {
		best[i] = math.Inf(1)
	}
	for range rounds {
		for i, call := range calls {
			start := time.Now()
			call()
			best[i] = min(best[i], float64(time.Since(start)))
		}
	}
	return best
}

// fnv1a is what the others are measured by: one multiplication a byte, and no table.
func fnv1a(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

var sink int

func skipSpeed(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector slows what it instruments, and not alike")
	}
	if testing.CoverMode() != "" {
		t.Skip("coverage counters slow what they count, and not alike")
	}
	if strconv.IntSize < 64 {
		t.Skip("the ratios are those of 64-bit machines: FNV-1a takes no 128-bit products")
	}
}

// Times depend on the machine and on who shares it, so they are printed, and what is asserted is ratios: to hashing the
// key byte by byte, which takes about 9 ns for 14 bytes where a lookup takes 5.
func TestSpeed(t *testing.T) {
	skipSpeed(t)
	const batch = 1024
	keys := manyKeys(1<<16, 14)
	at := 0
	next := func() []string {
		at = (at + batch) % len(keys)
		return keys[at : at+batch]
	}
	var dst [8]int
	at3 := math.NaN()
	for _, n := range []int{3, 10, 100, 1000} {
		r := mustNew(t, Nodes(numbered(n)...), nil)
		tags := mustNew(t, Nodes(numbered(n)...), &Options{HashTags: true})
		classic := mustNew(t, Nodes(numbered(n)...), &Options{Placement: Classic{}})
		live := NewLive(r)
		for _, key := range keys {
			r.Index3(key)
		}
		ns := shortest(2000,
			func() { // 0
				for _, key := range next() {
					sink += int(fnv1a(key) & 1)
				}
			},
			func() { // 1
				for _, key := range next() {
					sink += len(r.Locate(key))
				}
			},
			func() { // 2
				for _, key := range next() {
					a, b, c := r.Index3(key)
					sink += a + b + c
				}
			},
			func() { // 3
				for _, key := range next() {
					sink += r.AppendN(dst[:0], key, 3)[2]
				}
			},
			func() { // 4
				for _, key := range next() {
					sink += len(live.Locate(key))
				}
			},
			func() { // 5
				for _, key := range next() {
					sink += len(tags.Locate(key))
				}
			},
			func() { // 6
				for _, key := range next() {
					sink += len(classic.Locate(key))
				}
			},
		)
		for i := range ns {
			ns[i] /= batch
		}
		t.Logf("%4d nodes, keys of 14 B: Locate %.1f ns, Index3 %.1f, AppendN of 3 %.1f, through Live %.1f, with hash tags %.1f, classic %.1f; FNV-1a of the key %.1f",
			n, ns[1], ns[2], ns[3], ns[4], ns[5], ns[6], ns[0])
		if n == 3 {
			at3 = ns[1]
		}
		for _, c := range []struct {
			name      string
			got, most float64
		}{
			{"Locate", ns[1] / ns[0], 0.75},
			{"Index3", ns[2] / ns[0], 0.95},
			{"AppendN of 3", ns[3] / ns[0], 1.2},
			{"Locate with hash tags", ns[5] / ns[0], 1.1},
		} {
			if c.got > c.most {
				t.Errorf("%d nodes: %s takes %.2f of the time of FNV-1a, want at most %v", n, c.name, c.got, c.most)
			}
		}
		if ratio := ns[1] / at3; ratio > 1.6 {
			t.Errorf("%d nodes: Locate takes %.2f of the time with 3 nodes, want a flat line", n, ratio)
		}
	}
}

func TestSpeedOfRebuild(t *testing.T) {
	skipSpeed(t)
	keys := manyKeys(1<<16, 14)
	for _, n := range []int{3, 10, 100, 1000} {
		nodes := Nodes(numbered(n)...)
		r := mustNew(t, nodes, nil)
		ms := shortest(60,
			func() { // 65,536 FNV-1a
				for _, key := range keys {
					sink += int(fnv1a(key) & 1)
				}
			},
			func() { sink += must(t)(New(nodes, nil)).Len() },
			func() { sink += must(t)(r.WithDown("shard-2")).Len() },
			func() { sink += must(t)(r.With(Node{"new", 1})).Len() },
		)
		exact := shortest(5, func() { sink += must(t)(New(nodes, &Options{Placement: Table{Exact: true}})).Len() })
		t.Logf("%4d nodes: New %.2f ms, WithDown of one %.2f, With one more %.2f, New exact %.1f; FNV-1a of 65,536 keys %.2f",
			n, ms[1]/1e6, ms[2]/1e6, ms[3]/1e6, exact[0]/1e6, ms[0]/1e6)
		if ratio := ms[1] / ms[0]; n == 10 && ratio > 2 {
			t.Errorf("10 nodes: New takes %.2f times as long as 65,536 hashes, want at most 2", ratio)
		}
	}
}

func BenchmarkLocate(b *testing.B) {
	for _, n := range []int{3, 10, 100, 1000} {
		for _, length := range []int{8, 16, 32, 64, 256} {
			b.Run(fmt.Sprintf("%dnodes/%dB", n, length), func(b *testing.B) {
				r := mustNew(b, Nodes(numbered(n)...), nil)
				keys := manyKeys(1<<12, length)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					r.Locate(keys[i%len(keys)])
				}
			})
		}
	}
}

func BenchmarkIndex3(b *testing.B) {
	r := mustNew(b, Nodes(numbered(10)...), nil)
	keys := manyKeys(1<<12, 14)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Index3(keys[i%len(keys)])
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{3, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			nodes := Nodes(numbered(n)...)
			for b.Loop() {
				mustNew(b, nodes, nil)
			}
		})
	}
}

func BenchmarkGroup(b *testing.B) {
	r := mustNew(b, Nodes(numbered(10)...), nil)
	keys := manyKeys(100, 14)
	b.ReportAllocs()
	for b.Loop() {
		r.Group(keys)
	}
}
