package tier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// A rowValue is what the cache holds of a row: which row, and of which version.
// It is an int as in other tests: the compiler takes a second or two for a cache of something else.
type rowValue int

func valueOf(row int, version int64) rowValue { return rowValue(int(version)*modelRows + row) }

func (v rowValue) row() int       { return int(v) % modelRows }
func (v rowValue) version() int64 { return int64(v) / modelRows }

// A row is one of the database that the cache stands before. Its writers take turns, as
// a database has them do; its readers do not wait for them.
type row struct {
	writer  chan struct{} // full from a write of the database to the end of that of the cache
	version atomic.Int64
	acked   []atomic.Int64 // by process, the last version that it wrote
}

const (
	modelRows     = 60
	modelTags     = 6
	modelPrefixes = 4
)

func rowKey(row int) string { return fmt.Sprintf("p%d:%d", row%modelPrefixes, row) }
func rowTags(row int) []string {
	return []string{tagName(row % modelTags), tagName(row / 2 % modelTags)}
}
func tagName(n int) string      { return fmt.Sprint("t", n) }
func hasTag(row, tag int) bool  { return row%modelTags == tag || row/2%modelTags == tag }
func hasPrefix(row, p int) bool { return row%modelPrefixes == p }

var rowTagsOf = tiercache.TagsOf(func(v rowValue) []string { return rowTags(v.row()) })

// tagModel has several processes set, delete, load and evict values with tags, invalidate
// tags and clear prefixes, all at once and at random, and returns how many old values are
// left when all is quiet, and how often a process did not read its own last write. raw are
// the shards as they are, for evictions and for a process that comes late.
func tagModel(t *testing.T, seed uint64, steps int, caches []*tiercache.Cache[rowValue], raw map[string]tiercache.Shard, pause func(time.Duration)) (stale, unread int) {
	t.Helper()
	rows := make([]row, modelRows)
	for i := range rows {
		rows[i].writer, rows[i].acked = make(chan struct{}, 1), make([]atomic.Int64, len(caches))
	}
	var wrong, failed atomic.Int64
	// write changes rows in the database, and then in the cache.
	write := func(p int, which func(row int) bool, change func(version int64) error) {
		var own []int
		for i := range rows {
			if which(i) {
				rows[i].writer <- struct{}{}
				own = append(own, i)
			}
		}
		var version int64
		for _, i := range own {
			version = rows[i].version.Add(1)
		}
		err := change(version)
		for deadline := time.Now().Add(30 * time.Second); err != nil && time.Now().Before(deadline); pause(10 * time.Millisecond) {
			failed.Add(1) // the outcome is unknown, and the database has changed
			err = change(version)
		}
		if err != nil {
			t.Errorf("write: %v", err)
		}
		for _, i := range own {
			rows[i].acked[p].Store(rows[i].version.Load())
			<-rows[i].writer
		}
	}
	var wg sync.WaitGroup
	for worker := range 4 * len(caches) {
		wg.Go(func() {
			p := worker % len(caches)
			c, rnd := caches[p], rand.New(rand.NewPCG(seed, uint64(worker)))
			for range steps / (4 * len(caches)) {
				pause(time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
				i, work := rnd.IntN(modelRows), time.Duration(rnd.Int64N(int64(20*time.Millisecond)))
				tags := tiercache.Tags(rowTags(i)...)
				if rnd.IntN(2) == 0 {
					tags = rowTagsOf
				}
				ctx := t.Context()
				only := func(row int) bool { return row == i }
				floor := rows[i].acked[p].Load()
				v, err := valueOf(i, floor), error(nil)
				switch what := rnd.IntN(100); {
				case what < 40:
					v, err = c.GetOrLoad(ctx, rowKey(i), func(context.Context) (rowValue, error) {
						v := valueOf(i, rows[i].version.Load())
						pause(work)
						return v, nil
					}, tags)
				case what < 50:
					var got map[string]rowValue
					others := []string{rowKey(i), rowKey((i + 1) % modelRows), rowKey((i + 7) % modelRows)}
					got, err = c.GetMany(ctx, others, func(_ context.Context, keys []string) (map[string]rowValue, error) {
						values := map[string]rowValue{}
						for _, key := range keys {
							var p, n int
							fmt.Sscanf(key, "p%d:%d", &p, &n)
							values[key] = valueOf(n, rows[n].version.Load())
						}
						pause(work)
						return values, nil
					}, rowTagsOf)
					v = got[rowKey(i)]
				case what < 65:
					v, err = c.Get(ctx, rowKey(i))
					if errors.Is(err, tiercache.ErrNotFound) {
						v, err = valueOf(i, floor), nil
					}
				case what < 80:
					write(p, only, func(version int64) error { return c.Set(ctx, rowKey(i), valueOf(i, version), tags) })
				case what < 86:
					write(p, only, func(int64) error { return c.Delete(ctx, rowKey(i)) })
				case what < 93:
					tag := rnd.IntN(modelTags)
					write(p, func(row int) bool { return hasTag(row, tag) }, func(int64) error { return c.InvalidateTag(ctx, tagName(tag)) })
				case what < 94:
					prefix := rnd.IntN(modelPrefixes)
					write(p, func(row int) bool { return hasPrefix(row, prefix) }, func(int64) error {
						_, err := c.DeletePrefix(ctx, fmt.Sprintf("p%d:", prefix))
						return err
					})
				default: // an eviction
					key := "tc:" + rowKey(i)
					if rnd.IntN(2) == 0 {
						key = "tc#tag:" + tagName(rnd.IntN(modelTags))
					}
					for _, s := range raw {
						if _, err := s.Do(ctx, []string{"DEL", key}); err != nil {
							failed.Add(1)
						}
					}
				}
				if err != nil {
					failed.Add(1)
				} else if v.version() < floor {
					wrong.Add(1)
				}
			}
		})
	}
	wg.Wait()
	pause(bound) // what the last notices are owed
	late, err := tiercache.New[rowValue](raw, nil)
	ok(t, err)
	defer late.Close()
	synced(t, late)
	var hits int64
	for i := range rows {
		for n, c := range append(caches[:len(caches):len(caches)], late) {
			switch v, err := c.Get(t.Context(), rowKey(i)); {
			case err == nil && v != valueOf(i, rows[i].version.Load()):
				stale++
			case err != nil && !errors.Is(err, tiercache.ErrNotFound):
				t.Errorf("cache %d: %v", n, err)
			case err == nil:
				hits++
			}
		}
	}
	var sum tiercache.Stats
	for _, c := range caches {
		s := c.Stats()
		sum.Voided, sum.RefusedFills, sum.LocalHits, sum.Fills = sum.Voided+s.Voided, sum.RefusedFills+s.RefusedFills, sum.LocalHits+s.LocalHits, sum.Fills+s.Fills
	}
	t.Logf("seed %d: %d values at the end; %d hits in L1, %d fills, %d refused, %d voided by tags; %d operations failed", seed, hits, sum.LocalHits, sum.Fills, sum.RefusedFills, sum.Voided, failed.Load())
	if hits == 0 || sum.RefusedFills == 0 || sum.LocalHits == 0 {
		t.Error("not all was in use: the model shows nothing of it")
	}
	return stale, int(wrong.Load())
}

// A distant shard is one behind a network of random delays.
type distant struct {
	tiercache.Shard
	delay func() time.Duration
}

func (d distant) Do(ctx context.Context, cmd []string) (any, error) {
	time.Sleep(d.delay())
	reply, err := d.Shard.Do(ctx, cmd)
	time.Sleep(d.delay())
	return reply, err
}

func (d distant) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(channel, payload string)) error {
	return d.Shard.Subscribe(ctx, channels, onReady, func(channel, payload string) {
		time.Sleep(d.delay() / 4)
		onMessage(channel, payload)
	})
}

// forgetful answers that every tag's key is there and old: no tag was ever invalidated.
type forgetful struct{ tiercache.Shard }

func (f forgetful) Do(ctx context.Context, cmd []string) (any, error) {
	reply, err := f.Shard.Do(ctx, cmd)
	if list, ok := reply.([]any); ok && cmd[0] == "MGET" {
		for i, key := range cmd[1:] {
			if strings.Contains(key, "#tag:") {
				list[i] = strings.Repeat("\x00", 8)
			}
		}
	}
	return reply, err
}

// inMemory runs the model over three shards in memory, in a bubble's time.
func inMemory(t *testing.T, seed uint64, steps int, change func(tiercache.Shard) tiercache.Shard) (stale, unread int) {
	synctest.Test(t, func(t *testing.T) {
		raw := map[string]tiercache.Shard{"a": change(memory.New(nil)), "b": change(memory.New(nil)), "c": change(memory.New(nil))}
		var caches []*tiercache.Cache[rowValue]
		for i := range 3 {
			var mu sync.Mutex
			rnd := rand.New(rand.NewPCG(seed, 1000+uint64(i)))
			delay := func() time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(rnd.Int64N(int64(5 * time.Millisecond)))
			}
			shards := map[string]tiercache.Shard{}
			for name, s := range raw {
				shards[name] = distant{s, delay}
			}
			opts := &tiercache.Options{}
			if i == 2 {
				opts.LocalBytes = -1
			}
			c, err := tiercache.New[rowValue](shards, opts)
			ok(t, err)
			defer c.Close()
			caches = append(caches, c)
		}
		synced(t, caches...)
		stale, unread = tagModel(t, seed, steps, caches, raw, time.Sleep)
	})
	return stale, unread
}

func same(s tiercache.Shard) tiercache.Shard { return s }

// TestTagModel: whatever the order in which values with tags are set, deleted, loaded
// and evicted, tags invalidated and prefixes cleared, by three processes over three shards, no
// old value stays, and a process reads its own last write or a later one.
func TestTagModel(t *testing.T) {
	rounds, steps, last := 3, 1500, lasts(t, 20*time.Second)
	if last > 0 {
		steps = 5000
	}
	for began := time.Now(); rounds > 0 || time.Since(began) < last; rounds-- {
		seed := rand.Uint64()
		if stale, unread := inMemory(t, seed, steps, same); stale != 0 || unread != 0 {
			t.Errorf("seed %d: %d old values survived, %d reads were older than the process's own write", seed, stale, unread)
		}
	}
}

// TestTagModelNeeds: the model misses tags' keys.
func TestTagModelNeeds(t *testing.T) {
	stale, _ := inMemory(t, rand.Uint64(), 1500, func(s tiercache.Shard) tiercache.Shard { return forgetful{s} })
	t.Logf("%d old values survived", stale)
	if stale == 0 {
		t.Error("without tags' keys no old value survived: the model does not see it")
	}
}

// TestTagModelLive is the model on real servers.
func TestTagModelLive(t *testing.T) {
	t.Parallel()
	steps := 1000
	if long() {
		steps = 15_000
	}
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		nodes := servers(t, 3, harness.Options{})
		raw := map[string]tiercache.Shard{}
		for _, n := range nodes {
			raw[n.Name()] = c.shard(t, n.Addr())
		}
		caches := []*tiercache.Cache[rowValue]{
			open[rowValue](t, c, nodes, nil), open[rowValue](t, c, nodes, nil), open[rowValue](t, c, nodes, &tiercache.Options{LocalBytes: -1}),
		}
		synced(t, caches...)
		seed := rand.Uint64()
		if stale, unread := tagModel(t, seed, steps, caches, raw, time.Sleep); stale != 0 || unread != 0 {
			t.Errorf("seed %d: %d old values survived, %d reads were older than the process's own write", seed, stale, unread)
		}
	})
}
