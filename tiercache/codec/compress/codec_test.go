package compress_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/codec/compress"
	"github.com/shardkit/shardkit/tiercache/memory"
)

var (
	_ tiercache.Codec = &compress.Codec{}
	_ tiercache.Sizer = &compress.Codec{}
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, o compress.Options) *compress.Codec {
	t.Helper()
	c, err := compress.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var methods = map[string]compress.Method{"s2": compress.S2, "zstd": compress.Zstd}

// noise does not get shorter.
func noise(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return string(b)
}

func TestRoundTrip(t *testing.T) {
	other := map[string]*compress.Codec{
		"s2":   open(t, compress.Options{Method: compress.Zstd}),
		"zstd": open(t, compress.Options{Method: compress.S2, Above: 10}),
	}
	for name, method := range methods {
		c := open(t, compress.Options{Codec: tiercache.Raw, Method: method, MaxBytes: 3 << 20})
		for _, v := range []string{
			"", "short", strings.Repeat("a", 1024), strings.Repeat("a", 1025), strings.Repeat("abc", 1<<20), noise(5000),
			strings.Repeat(noise(100), 15_000), strings.Repeat("a", 3<<20+1),
		} {
			data, err := c.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			packs := len(v) > 1024 && len(v) <= 3<<20 && len(v) != 5000
			if packs != (data[0] != 0) || packs && len(data) > len(v)/2 || len(data) > len(v)+2 {
				t.Errorf("%s: %d bytes became %d, method %d", name, len(v), len(data), data[0])
			}
			if got := c.Size(data); got != len(v) {
				t.Errorf("%s: Size: got %d, want %d", name, got, len(v))
			}
			for _, reader := range []*compress.Codec{c, other[name]} {
				kept := bytes.Clone(data)
				var got string
				if err := reader.Unmarshal(data, &got); err != nil || got != v {
					t.Errorf("%s: %d bytes: got %d, %v", name, len(v), len(got), err)
				}
				if !bytes.Equal(kept, data) {
					t.Errorf("%s: Unmarshal changed its data", name)
				}
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for name, o := range map[string]compress.Options{
		"method":    {Method: 3},
		"below 0":   {MaxBytes: -1},
		"above":     {MaxBytes: 1 << 32},
		"nil inner": {Codecs: []tiercache.Codec{nil}},
		"itself":    {Codec: open(t, compress.Options{})},
	} {
		if _, err := compress.New(&o); err == nil || !strings.HasPrefix(err.Error(), "compress: ") {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
}

// head is what comes before compressed data.
func head(method compress.Method, codec byte, size uint32, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{byte(method), codec}, size), data...)
}

// TestBombs: what claims, or is, more than MaxBytes is an error, and takes no more
// memory than that.
func TestBombs(t *testing.T) {
	const limit, big = 1 << 20, 256 << 20
	zeros := make([]byte, big)
	packedS2 := s2.Encode(nil, zeros)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	packedZstd := enc.EncodeAll(zeros, nil)
	var stream bytes.Buffer // without the size of its content
	enc.Reset(&stream)
	if _, err := enc.Write(zeros); err != nil {
		t.Fatal(err)
	}
	enc.Close()
	small := enc.EncodeAll(zeros[:1000], nil)
	zeros = nil

	bombs := map[string][]byte{
		"s2 tells its size":           head(compress.S2, 0, big, packedS2),
		"s2 tells a small size":       head(compress.S2, 0, 1000, packedS2),
		"zstd tells its size":         head(compress.Zstd, 0, big, packedZstd),
		"zstd tells a small size":     head(compress.Zstd, 0, 1000, packedZstd),
		"zstd stream":                 head(compress.Zstd, 0, limit, stream.Bytes()),
		"zstd frame after frame":      head(compress.Zstd, 0, 1000, bytes.Repeat(small, 10_000)),
		"zstd tells more than it has": head(compress.Zstd, 0, limit, small),
		"s2 tells more than it has":   head(compress.S2, 0, limit, binary.AppendUvarint(nil, limit)),
		"zstd with a window of 512M":  head(compress.Zstd, 0, limit, []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 19 << 3, 0x01, 0x00, 0x00}),
		"empty":                       {},
		"one byte":                    {1},
		"no size":                     {1, 0, 0},
		"no data, s2":                 head(compress.S2, 0, 10, nil),
		"no data, zstd":               head(compress.Zstd, 0, 10, nil),
		"method 9":                    head(9, 0, 10, []byte("xxxxxxxxxx")),
		"inner codec 77":              head(compress.S2, 77, 10, s2.Encode(nil, []byte("xxxxxxxxxx"))),
		"compressed twice":            head(compress.S2, 3, 10, s2.Encode(nil, []byte("xxxxxxxxxx"))),
	}
	c := open(t, compress.Options{Codec: tiercache.Raw, MaxBytes: limit})
	var warm string
	if err := c.Unmarshal(head(compress.Zstd, 0, 1000, small), &warm); err != nil || len(warm) != 1000 {
		t.Fatal(len(warm), err)
	}
	for name, data := range bombs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var v string
		err := c.Unmarshal(data, &v)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.HasPrefix(err.Error(), "compress: ") {
			t.Errorf("%s: got %d bytes, %v, want an error", name, len(v), err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 4*limit {
			t.Errorf("%s: took %d bytes, where MaxBytes is %d", name, took, limit)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	c := open(f, compress.Options{Codec: tiercache.Raw, MaxBytes: 1 << 20})
	for _, method := range methods {
		data, err := open(f, compress.Options{Codec: tiercache.Raw, Method: method}).Marshal(strings.Repeat("abc", 1000))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v string
		err := c.Unmarshal(data, &v)
		if err == nil && len(v) > 1<<20 && data[0] != 0 {
			t.Fatalf("%d bytes", len(v))
		}
		if err == nil && c.Size(data) != len(v) {
			t.Fatalf("Size %d, got %d", c.Size(data), len(v))
		}
	})
}

// TestConcurrent: one codec for all callers.
func TestConcurrent(t *testing.T) {
	for name, method := range methods {
		c := open(t, compress.Options{Method: method})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 50 {
					want := strings.Repeat(fmt.Sprint(i, j), 1000)
					data, err := c.Marshal(want)
					if err != nil {
						t.Error(err)
						return
					}
					var got string
					if err := c.Unmarshal(data, &got); err != nil || got != want {
						t.Errorf("%s: got another value, %v", name, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestCache: what is beyond MaxBytes is a miss, counted; so is what a cache without the
// codec finds.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		cache := func(o tiercache.Options) *tiercache.Cache[string] {
			c, err := tiercache.New[string](map[string]tiercache.Shard{"a": shard}, &o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c
		}
		writer := cache(tiercache.Options{Codec: open(t, compress.Options{Codec: tiercache.Raw})})
		ctx, long := context.Background(), strings.Repeat("a", 1<<20)
		if err := writer.Set(ctx, "k", long); err != nil {
			t.Fatal(err)
		}
		stored, err := shard.Do(ctx, []string{"GET", "tc:k"})
		if text, ok := stored.(string); !ok || len(text) > 1<<16 {
			t.Errorf("the shard holds %d bytes, %v", len(text), err)
		}
		same := cache(tiercache.Options{Codecs: []tiercache.Codec{open(t, compress.Options{})}})
		if got, err := same.Get(ctx, "k"); err != nil || got != long {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		for name, c := range map[string]*tiercache.Cache[string]{
			"codec not known":   cache(tiercache.Options{}),
			"more than allowed": cache(tiercache.Options{Codec: open(t, compress.Options{MaxBytes: 1<<20 - 1})}),
		} {
			if _, err := c.Get(ctx, "k"); !errors.Is(err, tiercache.ErrNotFound) || c.Stats().Corrupt != 1 || c.Stats().Misses != 1 {
				t.Errorf("%s: got %v, %d corrupt, %d misses, want ErrNotFound, 1, 1", name, err, c.Stats().Corrupt, c.Stats().Misses)
			}
		}
	})
}

func Example() {
	shards := map[string]tiercache.Shard{"a": memory.New(nil)}
	codec, err := compress.New(&compress.Options{Method: compress.Zstd, Codec: tiercache.Raw})
	if err != nil {
		panic(err)
	}
	pages, err := tiercache.New[string](shards, &tiercache.Options{Codec: codec})
	if err != nil {
		panic(err)
	}
	defer pages.Close()
	if err := pages.Set(context.Background(), "/", strings.Repeat("<p>hello", 1000)); err != nil {
		fmt.Println(err)
	}
	page, err := pages.Get(context.Background(), "/")
	fmt.Println(len(page), err)
	// Output: 8000 <nil>
}
