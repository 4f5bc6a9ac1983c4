package ring

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 means a fresh one")

// random returns a generator whose seed a failure prints, with the command that repeats it.
func random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d; again: go test -run '^%s$' -seed %d", seed, t.Name(), seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// times is n, or a hundredth of it under the race detector.
func times(n int) int {
	if raceEnabled {
		return (n + 99) / 100
	}
	return n
}

// numbered returns shard-1 to shard-n.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("shard-%d", i+1)
	}
	return names
}

// randomNames returns n names as people give them, a set of one kind.
func randomNames(r *rand.Rand, n int) []string {
	prefix := fmt.Sprintf("%x", r.Uint32())
	names := make([]string, n)
	for i := range names {
		switch prefix[0] % 4 {
		case 0:
			names[i] = fmt.Sprintf("%s-%d", prefix, i+1)
		case 1:
			names[i] = fmt.Sprintf("cache-%d.%s.internal:6379", i, prefix)
		case 2:
			names[i] = fmt.Sprintf("%016x", r.Uint64())
		default:
			names[i] = prefix + string(rune('a'+i%26)) + string(rune('a'+i/26))
		}
	}
	return names
}

func mustNew(t testing.TB, nodes []Node, opts *Options) *Ring {
	t.Helper()
	r, err := New(nodes, opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return r
}

// must is for the methods that return another ring: must(t)(r.Without("a")).
func must(t testing.TB) func(*Ring, error) *Ring {
	return func(r *Ring, err error) *Ring {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}
