package tiercache_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

var (
	outageSeed = flag.Uint64("outage.seed", 0, "seed of the outages; 0 draws one")
	outageRuns = flag.Int("outage.runs", 0, "runs of a minute each; 0 means 30, 2 under the race detector, or 100 with SHARDKIT_LONG=1")
)

// A ledger is what was written to a key, and which of it was acknowledged when.
type ledger struct {
	writer chan struct{} // one writer at a time
	mu     sync.Mutex
	last   int         // version, in the database behind
	acked  []writeDone // ascending
}

type writeDone struct {
	version int
	at      time.Time
}

func (l *ledger) next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	return l.last
}

func (l *ledger) source() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *ledger) ack(version int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, writeDone{version, time.Now()})
}

// behind is for how long a later version than the given one had been acknowledged at
// some moment, 0 for none.
func (l *ledger) behind(version int, at time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.acked {
		if w.version > version {
			return max(at.Sub(w.at), 0)
		}
	}
	return 0
}

// chaos is a minute of reads, loads and writes in three processes over three shards,
// and of faults. It returns the longest time by which a read was behind, and how many
// reads gave a value.
func chaos(t *testing.T, seed uint64, apart bool, off tiercache.Mechanisms) (worst time.Duration, hits int, story []string) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	names := []string{"a", "b", "c"}
	s := newSite(names...)
	began := time.Now()
	var mu sync.Mutex
	tell := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		story = append(story, fmt.Sprintf("%8.3f  ", time.Since(began).Seconds())+fmt.Sprintf(format, args...))
	}
	opts := func(i int) *tiercache.Options {
		o := &tiercache.Options{TTL: time.Hour}
		if i == 2 {
			o.LocalBytes = -1
		}
		return o
	}
	processes := make([]*process, 3)
	for i := range processes {
		processes[i] = s.process(t, opts(i), off)
	}
	keys := manyKeys(8)
	ledgers := make([]ledger, len(keys))
	for i := range ledgers {
		ledgers[i].writer = make(chan struct{}, 1)
	}
	check := func(p int, k int, v int, at time.Time, how string) {
		d := ledgers[k].behind(v, at)
		mu.Lock()
		hits++
		isWorst := d > worst
		worst = max(worst, d)
		mu.Unlock()
		if isWorst && d > bound {
			tell("process %d %s %s (walk %v): version %d, %v behind", p, how, keys[k], processes[0].Ring().LocateN(keys[k], 3), v, d)
		}
	}
	over := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 9 {
		rnd := rand.New(rand.NewPCG(seed, uint64(100+w)))
		wg.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Duration(rnd.IntN(300)) * time.Millisecond):
				}
				p, k, what := w%3, rnd.IntN(len(keys)), rnd.IntN(10)
				mu.Lock()
				c := processes[p].Cache
				mu.Unlock()
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				at := time.Now()
				l := &ledgers[k]
				switch {
				case what < 5:
					if v, err := c.Get(ctx, keys[k]); err == nil {
						check(p, k, v, at, "read")
					}
				case what < 7:
					if v, err := c.GetOrLoad(ctx, keys[k], func(context.Context) (int, error) { return l.source(), nil }); err == nil {
						check(p, k, v, at, "loaded")
					}
				default:
					l.writer <- struct{}{}
					v := l.next()
					var err error
					verb := "set"
					if what == 9 {
						verb = "deleted"
						err = c.Delete(ctx, keys[k])
					} else {
						err = c.Set(ctx, keys[k], v)
					}
					if err == nil {
						l.ack(v)
					}
					tell("process %d %s %s: version %d, %v", p, verb, keys[k], v, err)
					<-l.writer
				}
				if d := time.Since(at); d > 4*time.Second && what < 7 {
					t.Errorf("an operation took %v", d)
				}
				cancel()
			}
		})
	}
	for time.Since(began) < time.Minute {
		time.Sleep(time.Duration(rnd.IntN(4000)) * time.Millisecond)
		name := names[rnd.IntN(3)]
		p := rnd.IntN(3)
		d := time.Duration(rnd.IntN(6000)) * time.Millisecond
		kind := rnd.IntN(10)
		if kind >= 4 && kind < 7 && !apart {
			kind = 0
		}
		mu.Lock()
		victim := processes[p]
		all := append([]*process(nil), processes...)
		mu.Unlock()
		switch {
		case kind < 4:
			tell("cut %s for all for %v", name, d)
			for _, p := range all {
				p.cut(name)
			}
			time.AfterFunc(d, func() {
				tell("mend %s", name)
				mu.Lock()
				defer mu.Unlock()
				for _, p := range processes {
					p.mend(name)
				}
			})
		case kind < 6:
			tell("cut %s for process %d for %v", name, p, d)
			victim.cut(name)
			time.AfterFunc(d, func() { tell("mend %s for process %d", name, p); victim.mend(name) })
		case kind == 6:
			tell("cut process %d for %v", p, d)
			victim.cut(names...)
			time.AfterFunc(d, func() { tell("mend process %d", p); victim.mend(names...) })
		case kind == 7:
			tell("restart %s", name)
			if rnd.IntN(2) == 0 {
				s.shards[name].Save()
			}
			s.shards[name].Restart()
		case kind == 8:
			evicted := []string{"tc#notes:" + names[rnd.IntN(3)], "tc#outages", "tc#state"}[rnd.IntN(3)]
			tell("evict %s at %s", evicted, name)
			s.shards[name].Do(t.Context(), []string{"DEL", evicted})
		default:
			tell("process %d dies", p)
			victim.cut(names...)
			next := s.process(t, opts(p), off)
			for _, name := range names { // what is cut for all is so for the new one
				if all[(p+1)%3].networks[name].cut.Load() {
					next.cut(name)
				}
			}
			mu.Lock()
			processes[p] = next
			mu.Unlock()
			go victim.Close()
		}
	}
	close(over)
	wg.Wait()
	time.Sleep(8 * time.Second) // of the last mends
	for _, p := range processes {
		p.mend(names...)
	}
	are(t, processes)
	time.Sleep(2 * bound)
	for k := range keys {
		for p := range processes {
			if v, err := processes[p].Get(t.Context(), keys[k]); err == nil {
				if d := ledgers[k].behind(v, time.Now()); d > 0 {
					tell("process %d read %s at rest: version %d, %v behind", p, keys[k], v, d)
					worst = time.Hour
				}
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return worst, hits, story
}

// TestOutages: whatever shards go and come, and whatever they lose, in a random order,
// no read is behind by more than the bound: two heartbeats where all processes see the
// same, Options.FailoverTTL where they do not. At rest, none is behind at all.
func TestOutages(t *testing.T) {
	seed, runs := *outageSeed, *outageRuns
	if seed == 0 {
		seed = rand.Uint64()
	}
	if runs == 0 {
		runs = 30
		if raceEnabled {
			runs = 2 // one of each sort
		}
		if os.Getenv("SHARDKIT_LONG") == "1" {
			runs = 100
		}
	}
	var worst [2]time.Duration
	hits := 0
	for run := range runs {
		apart := (seed+uint64(run))%2 == 1
		most, i := bound, 0
		if apart {
			most, i = 10*time.Second, 1
		}
		var story []string
		var behind time.Duration
		ok := t.Run(fmt.Sprint(run), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n int
				behind, n, story = chaos(t, seed+uint64(run), apart, tiercache.Mechanisms{})
				hits += n
			})
			if behind > most {
				t.Errorf("a read was %v behind, want %v at most", behind, most)
			}
		})
		worst[i] = max(worst[i], behind)
		if !ok {
			for _, line := range story {
				t.Log(line)
			}
			t.Fatalf("again: go test -run TestOutages ./tiercache -outage.seed=%d -outage.runs=1", seed+uint64(run))
		}
	}
	t.Logf("%d runs from seed %d, %d values read: at most %v behind with one view of the shards, %v with several", runs, seed, hits, worst[0], worst[1])
}

// TestOutagesNeed shows that the chaos misses what it should.
func TestOutagesNeed(t *testing.T) {
	if raceEnabled {
		t.Skip("it takes long under the race detector, and looks for none")
	}
	for name, off := range map[string]tiercache.Mechanisms{
		"notes":          {Notes: true},
		"outage numbers": {Outage: true},
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64() &^ 1
			for run := range uint64(200) {
				var behind time.Duration
				synctest.Test(t, func(t *testing.T) { behind, _, _ = chaos(t, seed+2*run, false, off) })
				if behind > bound {
					t.Logf("without %s: %v behind in run %d", name, behind, run)
					return
				}
			}
			t.Errorf("without %s no read was behind: the chaos does not see it", name)
		})
	}
}
