package msgpack_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/codec/msgpack"
	"github.com/shardkit/shardkit/tiercache/memory"
)

var _ tiercache.Codec = msgpack.Codec{}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type item struct {
	Name    string            `json:"name"`
	Price   float64           `json:"price,omitempty"`
	Count   int64             `msgpack:"n" json:"count"`
	Secret  string            `json:"-"`
	Made    time.Time         `json:"made"`
	Picture []byte            `json:"picture"`
	Labels  map[string]string `json:"labels"`
	Parts   []item            `json:"parts"`
	Of      *item             `json:"of"`
}

func TestRoundTrip(t *testing.T) {
	for name, v := range map[string]any{
		"zero":      item{},
		"text":      "naïve \x00 \xff",
		"numbers":   []int64{0, -1, 127, 128, -32, -33, math.MaxInt64, math.MinInt64},
		"unsigned":  []uint64{0, math.MaxUint64},
		"floats":    []float64{0, math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64},
		"bytes":     []byte{0, 255},
		"long":      strings.Repeat("x", 70_000),
		"many":      make([]bool, 70_000),
		"nil":       (*item)(nil),
		"long life": 30 * time.Hour,
		"nested": item{
			Name: "a", Price: 0.1, Count: -3, Made: time.Unix(1<<35, 999_999_999), Picture: bytes.Repeat([]byte{7}, 300),
			Labels: map[string]string{"": "x", "y": ""},
			Parts:  []item{{Name: "b", Of: &item{Name: "c", Made: time.Unix(0, 926_000_000)}}},
		},
	} {
		data, err := msgpack.Codec{}.Marshal(v)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := reflect.New(reflect.TypeOf(v))
		if err := (msgpack.Codec{}).Unmarshal(data, got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), v) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got.Elem(), err, v)
		}
	}
}

// TestNames: a type's json tags count, unless it has a msgpack tag.
func TestNames(t *testing.T) {
	data, err := msgpack.Codec{}.Marshal(item{Name: "a", Count: 1, Secret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := (msgpack.Codec{}).Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got["name"] != "a" || got["n"] != int64(1) {
		t.Errorf("got %v, want name a and n 1", got)
	}
	for _, key := range []string{"Name", "count", "Secret", "-", "price"} {
		if v, there := got[key]; there {
			t.Errorf("there is a field %q: %v", key, v)
		}
	}
}

// garbage asks for much memory, for a deep stack, or for a panic.
var garbage = map[string][]byte{
	"empty":              {},
	"no code":            {0xc1},
	"array of 4 billion": {0xdd, 0xff, 0xff, 0xff, 0xff},
	"map of 4 billion":   {0xdf, 0xff, 0xff, 0xff, 0xff},
	"maps in maps":       bytes.Repeat([]byte{0xdf, 0x00, 0x0f, 0x42, 0x40, 0xa1, 'k'}, 10_000),
	"string of 4 GB":     {0xdb, 0xff, 0xff, 0xff, 0xff, 'x'},
	"bytes of 4 GB":      {0xc6, 0xff, 0xff, 0xff, 0xff, 'x'},
	"extension of 4 GB":  {0xc9, 0xff, 0xff, 0xff, 0xff, 0xff},
	"deep":               append(bytes.Repeat([]byte{0x91}, 20_000_000), 0xc0),
	"deep maps":          append(bytes.Repeat([]byte{0x81, 0xa1, 'k'}, 5_000_000), 0xc0),
	"short number":       {0xcd, 1},
	"more than a value":  {0xc0, 0xc0},
	"another extension":  {0xd4, 5, 1},
}

// odd is whole, and right for some types.
var odd = map[string][]byte{
	"a map as a key":          {0x81, 0x80, 0xc0},
	"a map within a time":     {0xd7, 0xff, 0xdf, 0xff, 0xff, 0xff, 0xff, 0, 0, 0},
	"that, in a map":          {0x81, 0xa1, 'k', 0xd7, 0xff, 0xdf, 0xff, 0xff, 0xff, 0xff, 0, 0, 0},
	"that, in a struct":       append([]byte{0x81, 0xa2, 'o', 'f', 0xd7, 0xff, 0xdf}, bytes.Repeat([]byte{0xff}, 7)...),
	"an array within a time":  append([]byte{0xc7, 12, 0xff, 0x81, 0xa5, 'p', 'a', 'r', 't', 's', 0xdd}, 0xff, 0xff, 0xff, 0xff),
	"a string for an integer": {0x81, 0xa1, 'n', 0xa1, 'x'},
}

// targets are new variables of many kinds.
func targets() []any {
	return []any{
		new(any), new(item), new(string), new([]byte), new([]string), new([]item), new(map[string]any), new(map[string]string),
		new(map[any]any), new(map[string]item), new([]int64), new([3]int), new(time.Time), new(*item), new([][]map[int]bool), new(map[[2]string]int),
	}
}

// TestGarbage: whatever the bytes are, decoding takes memory of their order, and an
// error or a value comes back.
func TestGarbage(t *testing.T) {
	for name, data := range garbage {
		for _, v := range targets() {
			if err := measured(t, name, data, v); err == nil {
				t.Errorf("%s: taken for %T: %v", name, v, reflect.ValueOf(v).Elem())
			}
		}
	}
	for name, data := range odd {
		for _, v := range targets() {
			if err := measured(t, name, data, v); err != nil && !strings.HasPrefix(err.Error(), "msgpack: ") {
				t.Errorf("%s: into %T: %v", name, v, err)
			}
		}
	}
}

// measured decodes data into v, with memory in proportion.
func measured(t *testing.T, name string, data []byte, v any) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := msgpack.Codec{}.Unmarshal(data, v)
	runtime.ReadMemStats(&after)
	if took, most := after.TotalAlloc-before.TotalAlloc, uint64(4<<20+1000*len(data)); took > most {
		t.Errorf("%s into %T: took %d bytes, for %d of data", name, v, took, len(data))
	}
	return err
}

func TestDepth(t *testing.T) {
	var v any
	for range 9_999 {
		v = []any{v}
	}
	data, err := msgpack.Codec{}.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := (msgpack.Codec{}).Unmarshal(data, &got); err != nil {
		t.Error(err)
	}
	if _, err := (msgpack.Codec{}).Marshal([]any{[]any{v}}); err == nil {
		t.Error("wrote what it does not read: nested 10,001 deep")
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, data := range odd {
		f.Add(data)
	}
	for _, data := range garbage {
		if len(data) < 1000 {
			f.Add(data)
		}
	}
	for _, v := range []any{item{Name: "a", Made: time.Unix(5, 6), Parts: []item{{Name: "b"}}}, map[string]any{"k": []int{1, 300}}, -5, 0.5} {
		data, err := msgpack.Codec{}.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range targets() {
			err := measured(t, "data", data, v)
			if err != nil && !strings.HasPrefix(err.Error(), "msgpack: ") {
				t.Fatalf("into %T: %v", v, err)
			}
		}
	})
}

// TestCache: caches with and without the codec on one shard.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		open := func(codec tiercache.Codec, others ...tiercache.Codec) *tiercache.Cache[item] {
			c, err := tiercache.New[item](map[string]tiercache.Shard{"a": shard}, &tiercache.Options{Codec: codec, Codecs: others})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c
		}
		packed, inJSON, both := open(msgpack.Codec{}), open(nil), open(nil, msgpack.Codec{})
		want := item{Name: "a", Count: 7, Parts: []item{{Name: "b"}}}
		for key, c := range map[string]*tiercache.Cache[item]{"packed": packed, "json": inJSON} {
			if err := c.Set(context.Background(), key, want); err != nil {
				t.Fatal(err)
			}
			for _, reader := range []*tiercache.Cache[item]{packed, both} {
				got, err := reader.Get(context.Background(), key)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s: got %+v, %v, want %+v", key, got, err, want)
				}
			}
		}
		if got, err := inJSON.Get(context.Background(), "packed"); !errors.Is(err, tiercache.ErrNotFound) || inJSON.Stats().Corrupt != 1 {
			t.Errorf("a codec that is not known: got %+v, %v, %d counted, want ErrNotFound, 1", got, err, inJSON.Stats().Corrupt)
		}
	})
}

func Example() {
	shards := map[string]tiercache.Shard{"a": memory.New(nil)}
	items, err := tiercache.New[item](shards, &tiercache.Options{
		Codec:  msgpack.Codec{},
		Codecs: []tiercache.Codec{tiercache.JSON}, // what was written before is read; JSON always is
	})
	if err != nil {
		panic(err)
	}
	defer items.Close()
	// Output:
}
