package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"
)

const keyLength = 14

// makeKeys returns keys as people name them: a prefix and digits.
func makeKeys(n int, seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 1))
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%0*d", keyLength-5, r.Uint32N(1e9))
	}
	return keys
}

// nameSet returns names of one kind, another for every set: numbered, as people do, or random, as orchestrators do.
func nameSet(n, set int, seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, uint64(set)+2))
	prefix := fmt.Sprintf("%x", r.Uint32())
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i+1)
		if set%2 == 1 {
			names[i] = fmt.Sprintf("%016x", r.Uint64())
		}
	}
	return names
}

var errPanics = errors.New("panics")

// place returns the owners of the keys, by number; a peer that panics has none.
func place(p peer, names, keys []string) (owners []int, err error) {
	defer func() {
		if recover() != nil {
			owners, err = nil, errPanics
		}
	}()
	r := p.make(names)
	if r.close != nil {
		defer r.close()
	}
	numbers := make(map[string]int, len(names))
	for i, name := range names {
		numbers[name] = i
	}
	owners = make([]int, len(keys))
	for i, key := range keys {
		owners[i] = numbers[r.locate(key)]
	}
	return owners, nil
}

// deviation is how far the most loaded node is above its share, in per cent: the median of the sets, and the worst.
func deviation(p peer, nodes, n, sets int, seed uint64) string {
	keys := makeKeys(n, seed)
	var all []float64
	for set := range sets {
		owners, err := place(p, nameSet(nodes, set, seed), keys)
		if err != nil {
			return err.Error()
		}
		counts := make([]int, nodes)
		for _, o := range owners {
			counts[o]++
		}
		all = append(all, (float64(slices.Max(counts))*float64(nodes)/float64(n)-1)*100)
	}
	slices.Sort(all)
	return fmt.Sprintf("%s (%s)", percent(all[len(all)/2]), percent(all[len(all)-1]))
}

// change places keys on two sets of names and returns the mean of the part of the keys that moved, and of those that moved
// between two nodes of both.
func change(p peer, n, sets int, seed uint64, before, after func(names []string) []string, nodes int) (moved, bad float64, err error) {
	if p.name == peers[0].name {
		return 0, 0, errors.New("-")
	}
	keys := makeKeys(n, seed)
	for set := range sets {
		names := nameSet(nodes, set, seed)
		a, b := before(names), after(names)
		from, err := place(p, a, keys)
		if err != nil {
			return 0, 0, err
		}
		to, err := place(p, b, keys)
		if err != nil {
			return 0, 0, err
		}
		for i := range keys {
			if was, is := a[from[i]], b[to[i]]; was != is {
				moved++
				if slices.Contains(b, was) && slices.Contains(a, is) {
					bad++
				}
			}
		}
	}
	all := float64(n) * float64(sets) / 100
	return moved / all, bad / all, nil
}

func remapped(p peer, n, sets int, seed uint64) string {
	moved, _, err := change(p, n, sets, seed, func(names []string) []string { return names[:3] }, func(names []string) []string { return names }, 4)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.2f %%", moved)
}

func badWhenOneComes(p peer, n, sets int, seed uint64) string {
	_, bad, err := change(p, n, sets, seed, func(names []string) []string { return names[:10] }, func(names []string) []string { return names }, 11)
	if err != nil {
		return err.Error()
	}
	return percent(bad)
}

func badWhenOneGoes(p peer, n, sets int, seed uint64) string {
	_, bad, err := change(p, n, sets, seed, func(names []string) []string { return names }, func(names []string) []string { return names[1:] }, 10)
	if err != nil {
		return err.Error()
	}
	return percent(bad)
}

func percent(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 9.95:
		return fmt.Sprintf("%.0f %%", x)
	case x >= 0.995:
		return fmt.Sprintf("%.1f %%", x)
	}
	return fmt.Sprintf("%.2f %%", x)
}

type speed struct {
	ns          [3]string
	allocations string
}

// measureSpeeds times all peers in turn, each round starting with another: what else the machine does meets all of them, and
// the shortest is when it did nothing.
func measureSpeeds(seed uint64) map[string]speed {
	speeds := make(map[string]speed, len(peers))
	for column, nodes := range [...]int{3, 10, 100} {
		var rings []placed
		var names []string
		for _, p := range peers {
			r, err := try(p, nameSet(nodes, 0, seed))
			s := speeds[p.name]
			switch {
			case err != nil:
				s.ns[column] = err.Error()
			case r.all == nil:
				s.ns[column], s.allocations = "-", "-"
			default:
				rings, names = append(rings, r), append(names, p.name)
			}
			speeds[p.name] = s
		}
		times := race(rings, makeKeys(1<<16, seed), 100)
		for i, name := range names {
			s := speeds[name]
			s.ns[column] = strings.TrimSpace(fmt.Sprintf("%.1f", slices.Min(times[i])))
			s.allocations = fmt.Sprintf("%.0f", allocations(rings[i], makeKeys(1000, seed)))
			speeds[name] = s
			if rings[i].close != nil {
				rings[i].close()
			}
		}
	}
	return speeds
}

func try(p peer, names []string) (r placed, err error) {
	defer func() {
		if recover() != nil {
			err = errPanics
		}
	}()
	return p.make(names), nil
}

const batch = 4096 // keys a round

// race returns, for each ring, the ns that a lookup took in each round. Other keys come first, untimed: a program that
// looks keys up has its ring in the cache, and not thirteen others.
func race(rings []placed, keys []string, rounds int) [][]float64 {
	times := make([][]float64, len(rings))
	for round := range rounds {
		at := round * batch % (len(keys) - batch)
		for k := range rings {
			i := (k + round) % len(rings)
			runtime.KeepAlive(rings[i].all(keys[len(keys)-batch-at:][:batch]))
			start := time.Now()
			runtime.KeepAlive(rings[i].all(keys[at : at+batch]))
			times[i] = append(times[i], float64(time.Since(start).Nanoseconds())/batch)
		}
	}
	return times
}

func allocations(r placed, keys []string) float64 {
	runtime.KeepAlive(r.all(keys))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	runtime.KeepAlive(r.all(keys))
	runtime.ReadMemStats(&after)
	return math.Round(float64(after.Mallocs-before.Mallocs) / float64(len(keys)))
}
