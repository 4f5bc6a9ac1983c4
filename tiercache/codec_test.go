package tiercache_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// own is somebody's codec.
type own struct{ id byte }

func (c own) ID() byte { return c.id }

func (own) Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	return append([]byte("own"), data...), err
}

func (own) Unmarshal(data []byte, v any) error {
	data, ok := bytes.CutPrefix(data, []byte("own"))
	if !ok {
		return errors.New("not mine")
	}
	return json.Unmarshal(data, v)
}

func TestCodecs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		with := func(codec tiercache.Codec, others ...tiercache.Codec) *tiercache.Cache[string] {
			return open[string](t, one(shard), &tiercache.Options{Codec: codec, Codecs: others})
		}
		raw, inJSON, inOwn, knowing := with(nil), with(tiercache.JSON), with(own{200}), with(nil, own{200})
		synced(t, raw, inJSON, inOwn, knowing)
		mustSet(t, raw, "raw", "v")
		mustSet(t, inJSON, "json", "v")
		mustSet(t, inOwn, "own", "v")
		for _, key := range []string{"raw", "json", "own"} {
			wantGet(t, inOwn, key, "v")
			wantGet(t, knowing, key, "v")
		}
		wantGet(t, raw, "json", "v")
		wantGet(t, inJSON, "raw", "v")
		wantNone(t, raw, "own")
		if s := raw.Stats(); s.Corrupt != 1 || s.Misses != 1 {
			t.Errorf("a codec that is not known: got %d corrupt, %d misses, want 1 and 1", s.Corrupt, s.Misses)
		}
	})
}

func TestCodecsRefused(t *testing.T) {
	for name, opts := range map[string]*tiercache.Options{
		"nil":                 {Codecs: []tiercache.Codec{nil}},
		"the id of Raw":       {Codecs: []tiercache.Codec{own{0}}},
		"the id of JSON":      {Codecs: []tiercache.Codec{own{1}}},
		"one id for two":      {Codecs: []tiercache.Codec{own{200}, other{own{200}}}},
		"two not to compare":  {Codecs: []tiercache.Codec{table{own{200}, nil}, table{own{200}, nil}}},
		"the id of the first": {Codec: own{200}, Codecs: []tiercache.Codec{other{own{200}}}},
	} {
		if c, err := tiercache.New[int](one(memory.New(nil)), opts); err == nil {
			c.Close()
			t.Errorf("%s: no error", name)
		}
	}
	c, err := tiercache.New[int](one(memory.New(nil)), &tiercache.Options{Codec: own{200}, Codecs: []tiercache.Codec{own{200}, tiercache.Raw, tiercache.JSON}})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

type other struct{ own }

// A table cannot be compared.
type table struct {
	own
	words []string
}

// A dense codec writes a string of one repeated letter in a few bytes.
type dense struct{ own }

func (dense) Marshal(v any) ([]byte, error) { return json.Marshal(len(v.(string))) }

func (dense) Unmarshal(data []byte, v any) error {
	var n int
	err := json.Unmarshal(data, &n)
	*v.(*string) = strings.Repeat("a", n)
	return err
}

type sized struct{ dense }

func (c sized) Size(data []byte) int {
	var s string
	_ = c.Unmarshal(data, &s)
	return len(s)
}

// TestSizer: L1 counts what it holds, and not what a dense codec made of it.
func TestSizer(t *testing.T) {
	const size, room = 10_000, 50
	for _, codec := range []tiercache.Codec{dense{own{200}}, sized{dense{own{200}}}} {
		c := open[string](t, one(memory.New(nil)), &tiercache.Options{Codec: codec, LocalBytes: room * size})
		synced(t, c)
		_, tells := codec.(tiercache.Sizer)
		for i := range 4 * room {
			mustSet(t, c, strings.Repeat("k", i+1), strings.Repeat("a", size))
		}
		if !tells {
			if n := c.Stats().LocalEntries; n <= room {
				t.Errorf("without Size: got %d entries, more than %d show what Size is for", n, room)
			}
			continue
		}
		within(t, 5*time.Second, "entries beyond LocalBytes are gone", func() bool { return c.Stats().LocalEntries <= room })
	}
}

func TestFaster(t *testing.T) {
	c := open[string](t, one(memory.New(nil)), nil)
	synced(t, c)
	mustSet(t, c, "k", "v")
	s := c.Stats().Shards[0]
	for i := 1; i < len(s.Faster); i++ {
		if s.Faster[i] < s.Faster[i-1] {
			t.Fatalf("Faster[%d] is %d, and Faster[%d] %d", i, s.Faster[i], i-1, s.Faster[i-1])
		}
	}
	// Calls may have ended meanwhile, but none before.
	if last, now := s.Faster[63], c.Stats().Shards[0]; last == 0 || last+s.Errors > now.Calls || s.Took <= 0 {
		t.Errorf("got %d calls, %d failed, %d of any duration, %v together", now.Calls, s.Errors, last, s.Took)
	}
}
