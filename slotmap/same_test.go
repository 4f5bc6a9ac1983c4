package slotmap

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSameSlot(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want bool
	}{
		{nil, true},
		{[]string{"a"}, true},
		{[]string{"a", "a"}, true},
		{[]string{"subs:{42}", "42", "{42}x"}, true},
		{[]string{"subs:{42}", KeyFor("active", "subs:{42}")}, true},
		{[]string{"a", "b"}, false},
		{[]string{"{a}1", "{a}2", "{b}1"}, false},
		{[]string{"", "a"}, false},
	} {
		if got := SameSlot(c.keys...); got != c.want {
			t.Errorf("SameSlot(%q): got %v, want %v", c.keys, got, c.want)
		}
		if err := CheckSameSlot(c.keys...); (err == nil) != c.want {
			t.Errorf("CheckSameSlot(%q): got %v, want an error: %v", c.keys, err, !c.want)
		}
	}
}

func TestCrossSlotError(t *testing.T) {
	keys := []string{"subs:{42}", "a\nb\xff"}
	err := CheckSameSlot(keys...)
	var e *CrossSlotError
	if !errors.As(err, &e) {
		t.Fatalf("got %T, want a *CrossSlotError", err)
	}
	keys[0] = "overwritten"
	want := []KeySlot{{"subs:{42}", Slot("42")}, {"a\nb\xff", Slot("a\nb\xff")}}
	if len(e.Keys) != 2 || e.Keys[0] != want[0] || e.Keys[1] != want[1] {
		t.Errorf("got keys %v, want %v", e.Keys, want)
	}
	for _, part := range []string{
		"slotmap: 2 keys in different slots: ",
		fmt.Sprintf(`"subs:{42}" (slot %d), "a\nb\xff" (slot %d)`, want[0].Slot, want[1].Slot),
		"compares slot numbers, not nodes",
		"CROSSSLOT",
		"hash tag",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want %q in it", err, part)
		}
	}
}

func TestCrossSlotErrorStaysReadable(t *testing.T) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("{a}%d:%s", i, strings.Repeat("x", 1000))
	}
	keys[500] = "the-odd-one"
	err := CheckSameSlot(keys...)
	var e *CrossSlotError
	if !errors.As(err, &e) || len(e.Keys) != len(keys) {
		t.Fatalf("got %T, want a *CrossSlotError with all %d keys", err, len(keys))
	}
	text := err.Error()
	if len(text) > 3000 {
		t.Errorf("the message has %d bytes, want at most 3000", len(text))
	}
	for _, part := range []string{"1000 keys", `"{a}0:xxx`, `"{a}15:xxx`, "... (1006 bytes)", `"the-odd-one" (slot `, " and 983 more"} {
		if !strings.Contains(text, part) {
			t.Errorf("got %q, want %q in it", text, part)
		}
	}
	if strings.Contains(text, `"{a}16:`) {
		t.Errorf("got %q, want 16 keys and the odd one", text)
	}
}

func TestQuoteCutsBetweenRunes(t *testing.T) {
	for pad := range 4 {
		s := strings.Repeat("a", pad) + strings.Repeat("日", 100)
		got := quote(s)
		if !utf8.ValidString(got) || strings.Contains(got, `\x`) || !strings.HasSuffix(got, fmt.Sprintf(`"... (%d bytes)`, len(s))) {
			t.Errorf("quote(%q): got %s", s, got)
		}
	}
	if got := quote(strings.Repeat("\x80", 100)); !strings.HasSuffix(got, `"... (100 bytes)`) {
		t.Errorf("quote of 100 stray bytes: got %s", got)
	}
}
