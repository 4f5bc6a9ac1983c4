// Package hot finds the keys that are read most, among any number of keys, in
// bounded memory.
//
// It is HeavyKeeper (Gong, Yang, Zhang, Li, Uhlig, Chen, Uden, Li: HeavyKeeper, An
// Accurate Algorithm for Finding Top-k Elephant Flows, USENIX ATC 2018) over a
// sliding window, each cell one atomic word: the fingerprint of one key and its
// reads. Another key's read takes one off with a probability that falls with
// the number that is there, so rare keys leave soon and frequent ones stay. A count
// is never too high, but for two keys of one fingerprint in one cell (one pair
// in 2^32), and is counted to MaxReads.
package hot

import (
	"cmp"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	rows      = 2
	widthBits = 14
	width     = 1 << widthBits // cells in a row
	slots     = 1 << 10        // hot keys that are held by name
	ways      = 4              // slots that a key may be in
	base      = 1.08           // as in the paper
)

// A Sketch counts reads. It is safe for concurrent use.
type Sketch[T any] struct {
	reads     uint32
	window    int64
	seed      maphash.Seed
	inserting sync.Mutex
	cells     [rows][width]atomic.Uint64
	slots     [slots]atomic.Pointer[Key[T]]
}

// Key is a hot key. It is the same one until it is hot no longer.
type Key[T any] struct {
	Name  string
	Value T // the caller's

	hash  uint64
	count atomic.Uint64
}

// New returns a sketch for which a key is hot from the given number of reads
// within the window on, 1 to MaxReads, and until it has less than half of them.
func New[T any](reads int, window time.Duration) *Sketch[T] {
	return &Sketch[T]{reads: uint32(reads), window: int64(window), seed: maphash.MakeSeed()}
}

// Read counts one read of key at now (ns, of a clock that does not go back), and
// returns the key if it is hot, else nil.
func (s *Sketch[T]) Read(key string, now int64) *Key[T] {
	hash := maphash.String(s.seed, key)
	if k := s.find(hash, key); k != nil {
		if k.add(now, s.window) >= s.reads/2 {
			return k
		}
		s.remove(k)
		return nil
	}
	if est := s.count(hash, now); est >= s.reads {
		return s.insert(hash, key, est, now)
	}
	return nil
}

// Hot returns the key if it is hot, without counting a read.
func (s *Sketch[T]) Hot(key string) *Key[T] { return s.find(maphash.String(s.seed, key), key) }

// Top returns the hot keys and their reads within the window, most first.
func (s *Sketch[T]) Top(now int64) (keys []*Key[T], reads []int) {
	type ranked struct {
		key   *Key[T]
		reads uint32
	}
	var all []ranked
	for i := range s.slots {
		if k := s.slots[i].Load(); k != nil {
			if n := k.reads(now, s.window); n >= s.reads/2 {
				all = append(all, ranked{k, n})
			}
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.reads, a.reads), cmp.Compare(a.key.Name, b.key.Name))
	})
	for _, r := range all {
		keys, reads = append(keys, r.key), append(reads, int(r.reads))
	}
	return keys, reads
}

// count adds a read to the key's cells, and returns how many there were within
// the window.
func (s *Sketch[T]) count(hash uint64, now int64) (most uint32) {
	print := hash >> (64 - printBits)
	for row := range s.cells {
		cell := &s.cells[row][hash>>(row*widthBits)%width]
		for {
			old := cell.Load()
			held, t := unpack(old)
			t.roll(now, s.window)
			ours := held == print || t.sum() == 0
			switch {
			case ours:
				t.add()
			case !decays(t.sum()):
			case t.sum() == 1:
				ours, t = true, tally{pane: t.pane, cur: 1}
			default:
				t.takeOff()
			}
			if ours {
				held = print
			}
			if renewed := pack(held, t); renewed != old && !cell.CompareAndSwap(old, renewed) {
				continue
			}
			if ours {
				most = max(most, t.estimate(now, s.window))
			}
			break
		}
	}
	return most
}

func (s *Sketch[T]) find(hash uint64, key string) *Key[T] {
	for way := range uint64(ways) {
		if k := s.slot(hash, way).Load(); k != nil && k.hash == hash && k.Name == key {
			return k
		}
	}
	return nil
}

func (s *Sketch[T]) slot(hash, way uint64) *atomic.Pointer[Key[T]] { return &s.slots[(hash+way)%slots] }

// insert gives the key a slot: a free one, one whose key is hot no longer, or that
// of a key which is read less. It is nil if there is none.
func (s *Sketch[T]) insert(hash uint64, name string, reads uint32, now int64) *Key[T] {
	s.inserting.Lock()
	defer s.inserting.Unlock()
	if k := s.find(hash, name); k != nil {
		return k
	}
	var least *atomic.Pointer[Key[T]]
	fewest := reads
	for way := range uint64(ways) {
		slot := s.slot(hash, way)
		k := slot.Load()
		n := uint32(0)
		if k != nil {
			if n = k.reads(now, s.window); n < s.reads/2 {
				n = 0
			}
		}
		if n < fewest {
			least, fewest = slot, n
		}
	}
	if least == nil {
		return nil
	}
	t := tally{cur: reads}
	t.pane = pane(now, s.window)
	k := &Key[T]{Name: strings.Clone(name), hash: hash}
	k.count.Store(pack(0, t))
	least.Store(k)
	return k
}

func (s *Sketch[T]) remove(k *Key[T]) {
	for way := range uint64(ways) {
		s.slot(k.hash, way).CompareAndSwap(k, nil)
	}
}

// add counts a read, and returns how many there were within the window.
func (k *Key[T]) add(now, window int64) uint32 {
	for {
		old := k.count.Load()
		_, t := unpack(old)
		t.roll(now, window)
		t.add()
		if k.count.CompareAndSwap(old, pack(0, t)) {
			return t.estimate(now, window)
		}
	}
}

func (k *Key[T]) reads(now, window int64) uint32 {
	_, t := unpack(k.count.Load())
	t.roll(now, window)
	return t.estimate(now, window)
}

// decays says with probability base^-n that a read of another key takes one off.
func decays(n uint32) bool { return n < uint32(len(odds)) && rand.Uint32() < odds[n] }

// odds are the probabilities as parts of 2^32. Those above are too small to be one.
var odds = func() (odds [280]uint32) {
	for n := range odds {
		odds[n] = uint32(min(math.Pow(base, -float64(n))*(1<<32), math.MaxUint32))
	}
	return odds
}()
