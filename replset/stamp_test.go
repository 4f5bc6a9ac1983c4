package replset

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestStampRoundTrip(t *testing.T) {
	for _, st := range []stamp{
		{1, 0, 0},
		{1_795_000_000_000_000, 200, 0xabcdef},
		{math.MaxInt64, 1 << 30, digestMask},
		{7, cleared, 0},
	} {
		got, ok := parseStamp(st.String())
		if !ok || got != st {
			t.Errorf("%q is read as %v, %v, want %v", st, got, ok, st)
		}
	}
	// Redis keeps a string of up to 44 bytes in one allocation.
	if text := (stamp{9_999_999_999_999_999, 9_999_999, digestMask}).String(); len(text) > 44 {
		t.Errorf("%q is %d bytes long", text, len(text))
	}
	if st, ok := parseStamp("sk1 5 -1 0"); !ok || st != (stamp{5, cleared, 0}) {
		t.Errorf("the script's own form of a cleared stamp is read as %v, %v", st, ok)
	}
}

func TestForeignStamps(t *testing.T) {
	for _, text := range []string{
		"", "sk1", "sk1 ", "sk1 1", "sk1 1 2", "sk2 1 2 3", "sk1 x 2 3", "sk1 1 x 3", "sk1 1 2 x", "sk1 1 2 3 4",
		" sk1 1 2 3", "sk1  1 2 3", "sk1 1 2 3 ", "SK1 1 2 3", "sk1 1.5 2 3", "1", "v", "sk1 99999999999999999999 1 0",
	} {
		if st, ok := parseStamp(text); ok {
			t.Errorf("%q passes for a stamp: %v", text, st)
		}
	}
}

func TestDigest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	members := []string{"", "a", "\x00\xff", "a b"}
	for range 100 {
		members = append(members, strings.Repeat("x", rnd.IntN(80))+string(rune('a'+rnd.IntN(26))))
	}
	members = unique(members)
	want := digestOf(members)
	rnd.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	if digestOf(members) != want {
		t.Error("the digest depends on the order")
	}
	// A delta moves it by the members' hashes, in either direction.
	in, out := members[:50], members[50:]
	d := digestOf(in)
	for _, m := range out {
		d = (d + hashOf(m)) & digestMask
	}
	if d != want {
		t.Errorf("adding one by one gives %x, want %x", d, want)
	}
	for _, m := range in {
		d = (d - hashOf(m)) & digestMask
	}
	if d != digestOf(out) {
		t.Errorf("removing one by one gives %x, want %x", d, digestOf(out))
	}
	// The first six bytes of redis.sha1hex("a").
	if hashOf("a") != 0x86f7e437faa5 {
		t.Errorf("hashOf(a) is %x", hashOf("a"))
	}
}

func TestUniqueKeepsTheOrder(t *testing.T) {
	if got := unique([]string{"b", "a", "b", "", "a", ""}); !slices.Equal(got, []string{"b", "a", ""}) {
		t.Errorf("got %q", got)
	}
}
