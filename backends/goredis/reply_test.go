package goredis

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/shardkit/shardkit/slotmap"
)

func TestRESP2(t *testing.T) {
	type list = []any
	failed := errors.New("WRONGTYPE x")
	for _, c := range []struct {
		name, why string
		v, want   any
	}{
		{"string", "", "x", "x"},
		{"nil", "", nil, nil},
		{"integer", "", int64(-1), int64(-1)},
		{"true", "", true, int64(1)},
		{"false", "", false, int64(0)},
		{"error", "", failed, failed},
		{"map", "", map[any]any{"a": int64(1)}, list{"a", int64(1)}},
		{"map of lists", "", map[any]any{"a": list{true}}, list{"a", list{int64(1)}}},
		{"list", "", list{nil, "x", list{true, failed}}, list{nil, "x", list{int64(1), failed}}},
		{"empty list", "", list{}, list{}},
		{"members with scores", "RESP2 has them flat", list{list{"a", 1.5}, list{"b", 2.0}}, list{"a", "1.5", "b", "2"}},
		{"pairs of strings", "both have them nested", list{list{"a", "1.5"}, list{"b", "2"}}, list{list{"a", "1.5"}, list{"b", "2"}}},
		{"one member of ZPOPMIN", "", list{"a", 1.5}, list{"a", "1.5"}},
		{"ZMPOP", "both have them nested", list{"key", list{list{"a", 1.5}}}, list{"key", list{list{"a", "1.5"}}}},
	} {
		if got := resp2(c.v); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %#v, want %#v (%s)", c.name, got, c.want, c.why)
		}
	}
}

func TestDouble(t *testing.T) {
	for want, f := range map[string]float64{
		"0": 0, "1": 1, "-1.5": -1.5, "0.1": 0.1, "1700000000123": 1700000000123, "1234567.25": 1234567.25,
		"0.0001": 1e-4, "1e-05": 1e-5, "1e+20": 1e20, "9007199254740993": 9007199254740992 + 1,
		"inf": math.Inf(1), "-inf": math.Inf(-1), "nan": math.NaN(),
	} {
		if want == "9007199254740993" {
			want = "9007199254740992" // what a double holds
		}
		if got := double(f); got != want {
			t.Errorf("%v: got %q, want %q", f, got, want)
		}
	}
}

func TestKeyInSlot0(t *testing.T) {
	if slot := slotmap.Slot(keyInSlot0); slot != slotmap.Slot("") || slot != 0 {
		t.Errorf("%q lies in slot %d, the empty key in %d", keyInSlot0, slot, slotmap.Slot(""))
	}
}
