package hot

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	reads  = 100
	window = 5 * time.Second
)

func newSketch() *Sketch[int] { return New[int](reads, window) }

// at is a time within a pane: (2, 0.5) is the middle of the third.
func at(pane int, part float64) int64 {
	return int64(pane)*int64(window) + int64(part*float64(window))
}

func TestHotFromTheReadThatMakesIt(t *testing.T) {
	s := newSketch()
	for i := 1; i <= 2*reads; i++ {
		k := s.Read("a", at(3, float64(i)/1000))
		if got, want := k != nil, i >= reads; got != want {
			t.Fatalf("read %d: hot %v, want %v", i, got, want)
		}
		if i == reads {
			k.Value = 7
		}
	}
	if k := s.Hot("a"); k == nil || k.Value != 7 || k.Name != "a" {
		t.Errorf("got %+v, want the key with its value", k)
	}
	if k := s.Hot("b"); k != nil {
		t.Errorf("got %q hot, which was never read", k.Name)
	}
}

// TestWindow reads at steady rates for long: hot is who reaches the threshold within any
// window, whatever was before.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		perWindow int
		hot       bool
	}{{reads * 3 / 4, false}, {reads * 5 / 4, true}} {
		s := newSketch()
		hot := false
		for i := range c.perWindow * 20 {
			now := -30*int64(window) + int64(i)*int64(window)/int64(c.perWindow)
			hot = s.Read("a", now) != nil
			if hot && !c.hot {
				t.Fatalf("%d reads a window made the key hot at %v", c.perWindow, time.Duration(now))
			}
		}
		if hot != c.hot {
			t.Errorf("%d reads a window: hot %v, want %v", c.perWindow, hot, c.hot)
		}
	}
}

func TestCoolsDown(t *testing.T) {
	for _, c := range []struct {
		name string
		now  int64
		hot  bool
	}{
		{"within the window", at(3, 0.9), true},
		{"a third of them left", at(4, 0.7), false},
		{"long after", at(40, 0), false},
		{"when panes have the same number again", at(3+1<<paneBits, 0.9), true}, // reads of 85 minutes ago: known, and harmless
	} {
		s := newSketch()
		for range reads {
			s.Read("a", at(3, 0.5))
		}
		if got := s.Read("a", c.now) != nil; got != c.hot {
			t.Errorf("%s: hot %v, want %v", c.name, got, c.hot)
		}
	}
	s := newSketch()
	for range 2 * reads {
		s.Read("a", at(3, 0.5))
	}
	if keys, n := s.Top(at(3, 0.6)); len(keys) != 1 || n[0] != 2*reads {
		t.Errorf("got %d keys with %v reads, want one with %d", len(keys), n, 2*reads)
	}
	if keys, _ := s.Top(at(4, 0.9)); len(keys) != 0 {
		t.Errorf("got %q hot a window later, without a read", keys[0].Name)
	}
}

// TestClockBehind has reads come with a time just before another's, as they do
// between two processors.
func TestClockBehind(t *testing.T) {
	s := newSketch()
	for range reads / 2 {
		s.Read("a", at(4, 0))
		s.Read("a", at(4, 0)-1)
	}
	if s.Hot("a") == nil {
		t.Error("reads on both sides of a pane's end were forgotten")
	}
}

// TestTenMillionKeys has hot keys among as many as there may be: memory stays as it was, each
// hot key is found, and no other.
func TestTenMillionKeys(t *testing.T) {
	distinct, steps := 10_000_000, 400 // of an eighth of a second: 200,000 reads/s, 50 s
	if testing.Short() || raceEnabled {
		distinct, steps = 1_000_000, 40
	}
	const hotKeys, perStep = 40, 13 // 520 reads in 5 s each
	s := newSketch()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	key := make([]byte, 0, 32)
	for step := range steps {
		now := int64(step) * int64(time.Second/8)
		for range distinct / steps {
			key = strconv.AppendInt(append(key[:0], "cold:"...), int64(n), 10)
			n++
			if k := s.Read(string(key), now); k != nil {
				t.Fatalf("%q, read once, is hot", k.Name)
			}
			if rand.IntN(distinct/steps) < hotKeys*perStep {
				s.Read("hot:"+strconv.Itoa(rand.IntN(hotKeys)), now)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	keys, _ := s.Top(int64(steps) * int64(time.Second/8))
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d distinct keys: %d of %d hot keys found, the heap grew by %d bytes", n, len(keys), hotKeys, grown)
	if len(keys) != hotKeys {
		t.Errorf("got %d hot keys, want %d", len(keys), hotKeys)
	}
	if grown > 64<<10 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	runtime.KeepAlive(s)
}

// TestManyHotKeys has more hot keys than are held: those that are read more stay.
func TestManyHotKeys(t *testing.T) {
	s := newSketch()
	for i := range 4 * slots {
		for range reads {
			s.Read(fmt.Sprint("warm:", i), at(3, 0.1))
		}
	}
	for i := range slots / 8 {
		for range 4 * reads {
			s.Read(fmt.Sprint("hot:", i), at(3, 0.2))
		}
	}
	keys, n := s.Top(at(3, 0.3))
	if len(keys) > slots {
		t.Fatalf("got %d hot keys, want at most %d", len(keys), slots)
	}
	hot := 0
	for i, k := range keys {
		if k.Name[:4] == "hot:" {
			hot++
		}
		if i > 0 && n[i] > n[i-1] {
			t.Fatalf("got %d reads after %d, want them in order", n[i], n[i-1])
		}
	}
	// A hot key stays out only where all its four slots have one that is as hot.
	if hot < slots/8*9/10 {
		t.Errorf("got %d of the %d hottest keys", hot, slots/8)
	}
}

func TestConcurrent(t *testing.T) {
	const workers, each = 8, 20_000
	s := newSketch()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range each {
				s.Read("a", at(3, 0.5))
				s.Read(strconv.Itoa(i), at(3, 0.5))
				if i%1000 == 0 {
					s.Top(at(3, 0.5))
				}
			}
		})
	}
	wg.Wait()
	keys, n := s.Top(at(3, 0.5))
	if len(keys) == 0 || keys[0].Name != "a" || n[0] < workers*each-workers*reads || n[0] > workers*each {
		t.Errorf("got %d keys, the first with %v reads; want \"a\" with about %d", len(keys), n, workers*each)
	}
}

func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := newSketch()
	for range reads {
		s.Read("hot", 0)
	}
	var now int64
	if n := testing.AllocsPerRun(1000, func() { now++; s.Read("hot", now); s.Read("cold", now*int64(window)/50) }); n != 0 {
		t.Errorf("got %v allocations a read, want 0", n)
	}
}

func BenchmarkRead(b *testing.B) {
	keys := make([]string, 1<<16)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%08d", i)
	}
	for name, mask := range map[string]int{"distinct": 1<<16 - 1, "hot": 0} {
		b.Run(name, func(b *testing.B) {
			s := newSketch()
			b.ReportAllocs()
			for i := range b.N {
				s.Read(keys[i&mask], int64(i)*1000)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			s := newSketch()
			b.RunParallel(func(pb *testing.PB) {
				for i := rand.Int(); pb.Next(); i++ {
					s.Read(keys[i&mask], int64(i%1000)*1000)
				}
			})
		})
	}
}
