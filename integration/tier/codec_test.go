package tier

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/codec/compress"
	"github.com/shardkit/shardkit/tiercache/codec/msgpack"
	"github.com/shardkit/shardkit/tiercache/memory"
)

type page struct {
	Title string            `json:"title"`
	Body  []byte            `json:"body"`
	Meta  map[string]string `json:"meta"`
}

func compressed(t *testing.T, o compress.Options) tiercache.Codec {
	t.Helper()
	c, err := compress.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eachShard runs a test on the shard in memory, and on a real server over each client.
func eachShard(t *testing.T, test func(t *testing.T, shard tiercache.Shard)) {
	t.Run("memory", func(t *testing.T) { test(t, memory.New(nil)) })
	eachClient(t, func(t *testing.T, c client) { test(t, c.shard(t, servers(t, 1, harness.Options{})[0].Addr())) })
}

func on[V any](t *testing.T, shard tiercache.Shard, o tiercache.Options) *tiercache.Cache[V] {
	t.Helper()
	o.LocalBytes = -1 // each read is the shard's
	c, err := tiercache.New[V](map[string]tiercache.Shard{"s": shard}, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestCodecs: a value written by each codec is read by caches configured with
// every other, if they know it; if not it is a miss, counted.
func TestCodecs(t *testing.T) {
	packed := []tiercache.Codec{msgpack.Codec{}}
	codecs := map[string]tiercache.Codec{
		"json":            tiercache.JSON,
		"msgpack":         msgpack.Codec{},
		"s2 of json":      compressed(t, compress.Options{Codecs: packed}),
		"zstd of json":    compressed(t, compress.Options{Method: compress.Zstd, Codecs: packed}),
		"zstd, small":     compressed(t, compress.Options{Method: compress.Zstd, Codecs: packed, Above: 1 << 20}),
		"s2 of msgpack":   compressed(t, compress.Options{Codec: msgpack.Codec{}}),
		"zstd of msgpack": compressed(t, compress.Options{Codec: msgpack.Codec{}, Method: compress.Zstd}),
	}
	want := page{Title: "a", Body: []byte(strings.Repeat("hello \x00\xff", 1000)), Meta: map[string]string{"k": "v"}}
	eachShard(t, func(t *testing.T, shard tiercache.Shard) {
		for name, codec := range codecs {
			if err := on[page](t, shard, tiercache.Options{Codec: codec}).Set(t.Context(), name, want); err != nil {
				t.Fatal(err)
			}
		}
		for reader, codec := range codecs {
			others := []tiercache.Codec{msgpack.Codec{}}
			if codec.ID() != codecs["s2 of json"].ID() {
				others = append(others, codecs["s2 of json"])
			}
			c := on[page](t, shard, tiercache.Options{Codec: codec, Codecs: others})
			for writer := range codecs {
				if got, err := c.Get(t.Context(), writer); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("written as %s, read by one with %s: %d bytes, %v", writer, reader, len(got.Body), err)
				}
			}
			if n := c.Stats().Corrupt; n != 0 {
				t.Errorf("%s: %d counted as corrupt", reader, n)
			}
		}
		plain := on[page](t, shard, tiercache.Options{})
		for writer := range codecs {
			if got, err := plain.Get(t.Context(), writer); writer != "json" && !errors.Is(err, tiercache.ErrNotFound) {
				t.Errorf("%s, read by one that knows JSON alone: got %v, %v, want ErrNotFound", writer, got.Title, err)
			}
		}
		unknown := uint64(len(codecs) - 1)
		if s := plain.Stats(); s.Corrupt != unknown || s.Misses != unknown {
			t.Errorf("codecs that are not known: %d corrupt, %d misses, want %d", s.Corrupt, s.Misses, unknown)
		}
		v, err := plain.GetOrLoad(t.Context(), "msgpack", func(context.Context) (page, error) { return page{Title: "loaded"}, nil })
		if err != nil || v.Title != "loaded" {
			t.Errorf("a load over a codec that is not known: got %v, %v", v.Title, err)
		}
	})
}

// bomb is a codec that writes what it is told.
type bomb struct {
	id   byte
	data []byte
}

func (b bomb) ID() byte                    { return b.id }
func (b bomb) Marshal(any) ([]byte, error) { return b.data, nil }
func (b bomb) Unmarshal([]byte, any) error { return errors.New("nobody reads it") }

// TestBombs: bytes that would decode to far more than there is memory for are
// misses, counted, and keep nobody from loading.
func TestBombs(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	zeros := enc.EncodeAll(make([]byte, 100<<20), nil)
	head := func(size uint32) []byte { return binary.BigEndian.AppendUint32([]byte{byte(compress.Zstd), 1}, size) }
	deep := strings.Repeat("\x91", 5_000_000) + "\xc0"
	bombs := []bomb{
		{2, []byte{0xdf, 0xff, 0xff, 0xff, 0xff}},
		{2, []byte(deep)},
		{3, append(head(100<<20), zeros...)},
		{3, append(head(1000), zeros...)},
		{3, head(1 << 31)},
	}
	eachShard(t, func(t *testing.T, shard tiercache.Shard) {
		reader := on[map[string]any](t, shard, tiercache.Options{Codec: msgpack.Codec{}, Codecs: []tiercache.Codec{compressed(t, compress.Options{})}})
		for i, b := range bombs {
			key := fmt.Sprint("bomb", i)
			if err := on[map[string]any](t, shard, tiercache.Options{Codec: b}).Set(t.Context(), key, nil); err != nil {
				t.Fatal(err)
			}
			before := reader.Stats().Corrupt
			if got, err := reader.Get(t.Context(), key); !errors.Is(err, tiercache.ErrNotFound) {
				t.Errorf("bomb %d: got %d values, %v, want ErrNotFound", i, len(got), err)
			}
			if n := reader.Stats().Corrupt - before; n != 1 {
				t.Errorf("bomb %d: %d counted as corrupt, want 1", i, n)
			}
			load := func(context.Context) (map[string]any, error) { return map[string]any{"k": "loaded"}, nil }
			if got, err := reader.GetOrLoad(t.Context(), key, load); err != nil || got["k"] != "loaded" {
				t.Errorf("bomb %d: load: got %v, %v", i, got, err)
			}
		}
	})
}
