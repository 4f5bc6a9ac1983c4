package tiercache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// A site is some shards and the processes that use them, each over a network of its
// own.
type site struct {
	shards    map[string]*memory.Shard
	processes []*process
}

type process struct {
	*tiercache.Cache[int]
	networks map[string]*faulty
}

func newSite(names ...string) *site {
	s := &site{shards: map[string]*memory.Shard{}}
	for _, name := range names {
		s.shards[name] = memory.New(nil)
	}
	return s
}

func (s *site) process(t *testing.T, opts *tiercache.Options, off tiercache.Mechanisms) *process {
	t.Helper()
	p := &process{networks: map[string]*faulty{}}
	shards := map[string]tiercache.Shard{}
	for name, shard := range s.shards {
		p.networks[name] = &faulty{Shard: shard}
		shards[name] = p.networks[name]
	}
	p.Cache = openWithout[int](t, shards, opts, off)
	s.processes = append(s.processes, p)
	return p
}

// cut keeps shards from all processes; mend gives them back.
func (s *site) cut(names ...string) {
	for _, p := range s.processes {
		p.cut(names...)
	}
}

func (s *site) mend(names ...string) {
	for _, p := range s.processes {
		p.mend(names...)
	}
}

func (p *process) cut(names ...string) {
	for _, name := range names {
		p.networks[name].cut.Store(true)
	}
}

func (p *process) mend(names ...string) {
	for _, name := range names {
		p.networks[name].cut.Store(false)
	}
}

// are waits until exactly the given shards are out for the processes, and the others
// serve.
func are(t *testing.T, processes []*process, out ...string) {
	t.Helper()
	within(t, 10*time.Second, fmt.Sprintf("out are %v", out), func() bool {
		for _, p := range processes {
			for _, h := range p.Health() {
				if want := slices.Contains(out, h.Shard); want != (h.State == tiercache.ShardOut) || !want && h.State != tiercache.ShardServing {
					return false
				}
			}
		}
		return true
	})
}

// keyWith returns a key whose walk begins with the given shards.
func keyWith(t *testing.T, p *process, walk ...string) string {
	t.Helper()
	for i := range 1000 {
		key := fmt.Sprint("k", i)
		if slices.Equal(p.Ring().LocateN(key, len(walk)), walk) {
			return key
		}
	}
	t.Fatalf("no key has the walk %v", walk)
	return ""
}

// wantNot fails if a process reads what it must not.
func wantNot(t *testing.T, processes []*process, key string, old ...int) bool {
	t.Helper()
	for i, p := range processes {
		if v, err := p.Get(t.Context(), key); err == nil && slices.Contains(old, v) {
			t.Logf("process %d reads the old value %d", i, v)
			return false
		}
	}
	return true
}

// outages runs a test on three shards and two processes, one of them without L1,
// with all mechanisms and without one. The test returns whether no old value was read.
func outages(t *testing.T, off tiercache.Mechanisms, test func(t *testing.T, s *site, a, b *process) bool) {
	t.Helper()
	withAndWithout(t, off, func(t *testing.T, off tiercache.Mechanisms) bool {
		s := newSite("a", "b", "c")
		a := s.process(t, nil, off)
		b := s.process(t, &tiercache.Options{LocalBytes: -1}, off)
		synced(t, a.Cache, b.Cache)
		return !test(t, s, a, b)
	})
}

// TestOverwrittenDuringOutage: what the owner holds from before is not read when it
// is back.
func TestOverwrittenDuringOutage(t *testing.T) {
	outages(t, tiercache.Mechanisms{Notes: true}, func(t *testing.T, s *site, a, b *process) bool {
		key := keyWith(t, a, "a", "b")
		mustSet(t, a.Cache, key, 1)
		s.cut("a")
		are(t, s.processes, "a")
		mustSet(t, a.Cache, key, 2)
		wantGet(t, a.Cache, key, 2)
		wantGet(t, b.Cache, key, 2)
		s.mend("a")
		are(t, s.processes)
		ok := wantNot(t, s.processes, key, 1)
		mustSet(t, b.Cache, key, 3)
		synctest.Wait()
		return wantNot(t, s.processes, key, 1, 2) && ok
	})
}

// TestDeletedDuringOutage: the same for a key that was deleted.
func TestDeletedDuringOutage(t *testing.T) {
	outages(t, tiercache.Mechanisms{Notes: true}, func(t *testing.T, s *site, a, b *process) bool {
		key := keyWith(t, a, "a", "b")
		mustSet(t, a.Cache, key, 1)
		s.cut("a")
		are(t, s.processes, "a")
		if err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		s.mend("a")
		are(t, s.processes)
		return wantNot(t, s.processes, key, 1)
	})
}

// TestFlapTwice: what stood in during the first outage is not read in a second one
// within its life.
func TestFlapTwice(t *testing.T) {
	outages(t, tiercache.Mechanisms{Outage: true}, func(t *testing.T, s *site, a, b *process) bool {
		key := keyWith(t, a, "a", "b")
		s.cut("a")
		are(t, s.processes, "a")
		mustSet(t, a.Cache, key, 1)
		wantGet(t, b.Cache, key, 1)
		s.mend("a")
		are(t, s.processes)
		time.Sleep(4 * time.Second) // until nobody deletes where others may look
		mustSet(t, b.Cache, key, 2)
		synctest.Wait()
		wantGet(t, a.Cache, key, 2)
		s.cut("a")
		are(t, s.processes, "a")
		return wantNot(t, s.processes, key, 1)
	})
}

// TestOutInTurn: the owner and those that stand in for it go out and come back in
// all orders, with a write in each state. Only the last value is ever read.
func TestOutInTurn(t *testing.T) {
	for _, order := range [][]string{
		{"-a", "-b", "+a", "+b"}, {"-a", "-b", "+b", "+a"}, {"-a", "-b", "+b", "-b", "+a", "+b"}, {"-a", "-b", "+a", "-a", "+b", "+a"},
		{"-b", "-a", "+b", "+a"}, {"-a", "-c", "-b", "+c", "+b", "+a"}, {"-a", "+a", "-a", "-b", "+b", "+a"}, {"-a", "-b", "-c", "+a", "+b", "+c"},
	} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite("a", "b", "c")
				a, b := s.process(t, nil, tiercache.Mechanisms{}), s.process(t, &tiercache.Options{LocalBytes: -1}, tiercache.Mechanisms{})
				synced(t, a.Cache, b.Cache)
				key := keyWith(t, a, "a", "b", "c")
				version, hits := 1, 0
				mustSet(t, a.Cache, key, version)
				out := map[string]bool{}
				for _, step := range order {
					name := step[1:]
					if out[name] = step[0] == '-'; out[name] {
						s.cut(name)
					} else {
						delete(out, name)
						s.mend(name)
					}
					are(t, s.processes, slices.Collect(maps.Keys(out))...)
					for _, p := range s.processes {
						if v, err := p.Get(t.Context(), key); err == nil && v != version {
							t.Fatalf("after %s: read %d, want %d or a miss", step, v, version)
						} else if err == nil {
							hits++
						}
					}
					if len(out) == len(s.shards) {
						continue
					}
					version++
					mustSet(t, s.processes[version%2].Cache, key, version)
					synctest.Wait()
					for _, p := range s.processes {
						wantGet(t, p.Cache, key, version)
					}
					time.Sleep(100 * time.Millisecond)
				}
			})
		})
	}
}

// TestTwoViews: one process does not reach a shard that the other uses. What each
// writes the other sees within the bound.
func TestTwoViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite("a", "b", "c")
		a, b := s.process(t, nil, tiercache.Mechanisms{}), s.process(t, nil, tiercache.Mechanisms{})
		synced(t, a.Cache, b.Cache)
		key := keyWith(t, a, "a", "b")
		mustSet(t, a.Cache, key, 1)
		synctest.Wait()
		wantGet(t, b.Cache, key, 1)
		a.cut("a")
		are(t, []*process{a}, "a")
		are(t, []*process{b})
		for i := 2; i < 40; i += 2 {
			mustSet(t, a.Cache, key, i)
			time.Sleep(bound)
			if !wantNot(t, s.processes[1:], key, i-1) {
				t.Fatalf("round %d: %v after the other's write", i, bound)
			}
			mustSet(t, b.Cache, key, i+1)
			time.Sleep(bound)
			if !wantNot(t, s.processes[:1], key, i) {
				t.Fatalf("round %d: %v after the other's write, which is also deleted where it is looked for", i, bound)
			}
		}
		a.mend("a")
		are(t, s.processes)
		mustSet(t, a.Cache, key, 100)
		synctest.Wait()
		wantGet(t, b.Cache, key, 100)
	})
}

// TestKilledInDrain: a process dies at each step of bringing a shard back. The next
// one reads nothing old.
func TestKilledInDrain(t *testing.T) {
	for step := range 40 {
		synctest.Test(t, func(t *testing.T) {
			s := newSite("a", "b", "c")
			a := s.process(t, nil, tiercache.Mechanisms{})
			synced(t, a.Cache)
			key, other := keyWith(t, a, "a", "b"), keyWith(t, a, "a", "c")
			mustSet(t, a.Cache, key, 1)
			mustSet(t, a.Cache, other, 1)
			s.cut("a")
			are(t, s.processes, "a")
			mustSet(t, a.Cache, key, 2)
			mustSet(t, a.Cache, other, 2)
			time.Sleep(5 * time.Second)
			// It dies before its step-th command that is no greeting.
			var left atomic.Int64
			left.Store(int64(step))
			die := func(cmd []string) bool {
				if slices.Contains(cmd, "ROLE") || cmd[0] == "MGET" {
					return false
				}
				return left.Add(-1) < 0
			}
			for _, n := range a.networks {
				n.dies.Store(&die)
			}
			s.mend("a")
			time.Sleep(400 * time.Millisecond)
			synctest.Wait()
			s.cut("a", "b", "c")
			a.Close()
			s.processes = nil
			time.Sleep(time.Duration(step%3) * time.Second)
			b := s.process(t, nil, tiercache.Mechanisms{})
			if !wantNot(t, []*process{b}, key, 1) || !wantNot(t, []*process{b}, other, 1) {
				t.Errorf("killed before command %d: an old value was read", step)
			}
			are(t, s.processes)
			if !wantNot(t, []*process{b}, key, 1) || !wantNot(t, []*process{b}, other, 1) {
				t.Errorf("killed before command %d: an old value was read later", step)
			}
		})
	}
}

// TestNoteHolderRestarted: the shard that held the notes comes back empty, and the
// owner loses what it held.
func TestNoteHolderRestarted(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, s *memory.Shard){
		"restarted empty": func(_ *testing.T, s *memory.Shard) { s.Restart() },
		"notes evicted": func(t *testing.T, s *memory.Shard) {
			if n, err := s.Do(t.Context(), []string{"DEL", "tc#notes:a"}); n != int64(1) || err != nil {
				t.Errorf("got %v, %v", n, err)
			}
		},
		"outages evicted too": func(t *testing.T, s *memory.Shard) {
			if n, err := s.Do(t.Context(), []string{"DEL", "tc#notes:a", "tc#outages"}); n != int64(2) || err != nil {
				t.Errorf("got %v, %v", n, err)
			}
		},
		"all evicted": func(t *testing.T, s *memory.Shard) {
			if _, err := s.Do(t.Context(), []string{"FLUSHALL"}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite("a", "b", "c")
				a, b := s.process(t, nil, tiercache.Mechanisms{}), s.process(t, &tiercache.Options{LocalBytes: -1}, tiercache.Mechanisms{})
				synced(t, a.Cache, b.Cache)
				key := keyWith(t, a, "a", "b")
				mustSet(t, a.Cache, key, 1)
				s.cut("a")
				are(t, s.processes, "a")
				mustSet(t, a.Cache, key, 2)
				lose(t, s.shards["b"])
				time.Sleep(5 * time.Second)
				s.mend("a")
				are(t, s.processes)
				if !wantNot(t, s.processes, key, 1) {
					t.Error("an old value was read")
				}
			})
		})
	}
}

// TestRestartOfAll: shards that all answer keep their values over a restart of every
// process.
func TestRestartOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite("a", "b", "c")
		a := s.process(t, nil, tiercache.Mechanisms{})
		synced(t, a.Cache)
		time.Sleep(time.Minute)
		keys := manyKeys(100)
		for i, key := range keys {
			mustSet(t, a.Cache, key, i)
		}
		a.Close()
		time.Sleep(time.Minute)
		b := s.process(t, nil, tiercache.Mechanisms{})
		got, err := b.GetMany(t.Context(), keys, nil)
		if err != nil || len(got) != len(keys) {
			t.Errorf("got %d of %d values, %v", len(got), len(keys), err)
		}
	})
}

// TestWhileOneIsAway: loads are answered all the time. Writes fail only until the
// shard is out, and one that failed leaves a note.
func TestWhileOneIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite("a", "b", "c")
		a, b := s.process(t, nil, tiercache.Mechanisms{}), s.process(t, nil, tiercache.Mechanisms{})
		synced(t, a.Cache, b.Cache)
		keys := manyKeys(60)
		for _, key := range keys {
			mustSet(t, a.Cache, key, 1)
			wantGet(t, b.Cache, key, 1)
		}
		s.cut("a")
		cut := time.Now()
		failed := map[string]bool{}
		for _, key := range keys {
			if err := a.Delete(t.Context(), key); err != nil {
				failed[key] = true
				if d := time.Since(cut); d > 1700*time.Millisecond {
					t.Errorf("a Delete failed %v after the shard went: %v", d, err)
				}
			}
			start := time.Now()
			if v, err := b.GetOrLoad(t.Context(), key, func(context.Context) (int, error) { return 2, nil }); err != nil || v != 2 && v != 1 {
				t.Errorf("a load: got %v, %v", v, err)
			}
			if d := time.Since(start); d > time.Second {
				t.Errorf("a load took %v", d)
			}
		}
		if len(failed) == 0 {
			t.Error("no Delete failed: the test shows nothing")
		}
		are(t, s.processes, "a")
		for _, key := range keys {
			if err := a.Delete(t.Context(), key); err != nil {
				t.Errorf("while the shard is out: %v", err)
			}
			if err := b.Set(t.Context(), key, 3); err != nil {
				t.Errorf("while the shard is out: %v", err)
			}
		}
		a.Close() // whose notes are left
		time.Sleep(5 * time.Second)
		s.mend("a")
		are(t, []*process{b})
		for key := range failed {
			if !wantNot(t, []*process{b}, key, 1) {
				t.Errorf("%s: a Delete that failed left no note", key)
			}
		}
	})
}

// TestManyNotes: of more keys than are deleted in one step.
func TestManyNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite("a", "b")
		a := s.process(t, &tiercache.Options{LocalBytes: -1}, tiercache.Mechanisms{})
		synced(t, a.Cache)
		var keys []string
		values := map[string]int{}
		for i := 0; len(keys) < 1200; i++ {
			if key := fmt.Sprint("k", i); a.Ring().Locate(key) == "a" {
				keys = append(keys, key)
				values[key] = 1
			}
		}
		if err := a.SetMany(t.Context(), values); err != nil {
			t.Fatal(err)
		}
		s.cut("a")
		are(t, s.processes, "a")
		if err := a.DeleteMany(t.Context(), keys...); err != nil {
			t.Fatal(err)
		}
		s.mend("a")
		are(t, s.processes)
		got, err := a.GetMany(t.Context(), keys, nil)
		if len(got) > 0 || err != nil {
			t.Errorf("%d deleted values are back, %v", len(got), err)
		}
		if n, err := s.shards["b"].Do(t.Context(), []string{"EXISTS", "tc#notes:a"}); n != int64(0) || err != nil {
			t.Errorf("the notes are there still: %v, %v", n, err)
		}
	})
}

// TestUnhealthy: a shard that answers, and takes no writes, is out.
func TestUnhealthy(t *testing.T) {
	for _, text := range []string{
		"READONLY You can't write against a read only replica.", "OOM command not allowed when used memory > 'maxmemory'.",
		"LOADING Redis is loading the dataset in memory", "MASTERDOWN Link with MASTER is down", "MISCONF Errors writing to the AOF file",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite("a", "b")
			a := s.process(t, nil, tiercache.Mechanisms{})
			synced(t, a.Cache)
			key := keyWith(t, a, "a")
			answer := errors.New(text)
			a.networks["a"].answers.Store(&answer)
			began := time.Now()
			are(t, s.processes, "a")
			if d := time.Since(began); d > 1700*time.Millisecond {
				t.Errorf("%s: out after %v", text, d)
			}
			mustSet(t, a.Cache, key, 1)
			wantGet(t, a.Cache, key, 1)
			if h := a.Health()[0]; h.Err == nil || h.Err.Error() != text || h.Since.Before(began) {
				t.Errorf("Health: got %+v", h)
			}
			a.networks["a"].answers.Store(nil)
			back := time.Now()
			are(t, s.processes)
			if d := time.Since(back); d > time.Second {
				t.Errorf("%s: back after %v", text, d)
			}
		})
	}
}
