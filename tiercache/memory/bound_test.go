package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// held is the bytes of all keys and values, and how many there are.
func held(t *testing.T, s *memory.Shard) (bytes, n int) {
	t.Helper()
	for _, key := range do(t, s, "KEYS", "*").([]any) {
		value := do(t, s, "GET", key.(string))
		bytes += len(key.(string)) + len(value.(string))
		n++
	}
	return bytes, n
}

// What is held stays below the limit, near to it, and what has no life stays.
func TestMaxBytes(t *testing.T) {
	const limit, size = 1 << 20, 1000
	now := time.Unix(1700000000, 0)
	s := memory.New(&memory.Options{MaxBytes: limit, Now: func() time.Time { return now }})
	do(t, s, "SET", "forever", "v")
	for i := range 10 * limit / size {
		do(t, s, "SET", fmt.Sprintf("k%06d", i), strings.Repeat("x", size), "PX", "60000")
		if i%500 == 0 {
			if bytes, n := held(t, s); bytes+100*n > limit {
				t.Fatalf("after %d values: %d bytes in %d keys, of at most %d", i, bytes, n, limit)
			}
		}
	}
	bytes, n := held(t, s)
	if bytes+100*n < limit*3/4 {
		t.Errorf("%d bytes in %d keys: much less than the limit of %d", bytes, n, limit)
	}
	if do(t, s, "GET", "forever") != "v" {
		t.Error("a key without a life is gone")
	}
	// What is over goes before what is not.
	now = now.Add(50 * time.Second)
	do(t, s, "SET", "young", "v", "PX", "60000")
	now = now.Add(11 * time.Second)
	for i := range limit / 2 / size {
		do(t, s, "SET", fmt.Sprintf("new%06d", i), strings.Repeat("x", size), "PX", "60000")
	}
	if do(t, s, "GET", "young") != "v" || do(t, s, "DBSIZE") != int64(limit/2/size+2) {
		t.Errorf("%v keys are left, want the %d new ones, the young one and the one without a life", do(t, s, "DBSIZE"), limit/2/size)
	}
}

// A cache over a shard that is too small takes every write, and gives each value as it was written, or none.
func TestCacheOverMaxBytes(t *testing.T) {
	s := memory.New(&memory.Options{MaxBytes: 1 << 18})
	c, err := tiercache.New[string](map[string]tiercache.Shard{"a": s}, &tiercache.Options{LocalBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const keys = 2000
	for version := range 2 {
		for i := range keys {
			if err := c.Set(t.Context(), fmt.Sprint("k", i), fmt.Sprint(version, strings.Repeat("x", 1000))); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := 0
	for i := range keys {
		v, err := c.Get(t.Context(), fmt.Sprint("k", i))
		switch {
		case err == nil && v[0] == '1':
			found++
		case err == nil || err != tiercache.ErrNotFound:
			t.Errorf("k%d: got %.10q, %v; want what was written last, or nothing", i, v, err)
		}
	}
	if found < 100 || found > 300 {
		t.Errorf("%d values of 1,000 bytes are there, of a shard of 256 KiB", found)
	}
}
