package main

import (
	"encoding/hex"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

type vector struct {
	key  string
	slot uint16
}

// readVectors reads slotmap's record of what CLUSTER KEYSLOT answered: the key in hexadecimal, a tab, the slot. It keeps
// each key once, so that a count of wrong answers is one of keys.
func readVectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile("../../../slotmap/testdata/keyslots.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		encoded, slot, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		key, err := hex.DecodeString(encoded)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		n, err := strconv.ParseUint(slot, 10, 14)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			vectors = append(vectors, vector{string(key), uint16(n)})
		}
	}
	if len(vectors) != 374 {
		t.Fatalf("got %d distinct keys, want 374", len(vectors))
	}
	return vectors
}

// wrong returns the keys for which p contradicts the server. It asks several times, so that a random answer cannot be
// right by luck.
func wrong(p Peer, vectors []vector) []string {
	var keys []string
	for _, v := range vectors {
		for range 8 {
			if p.Slot(v.key) != v.slot {
				keys = append(keys, v.key)
				break
			}
		}
	}
	return keys
}

func TestVectors(t *testing.T) {
	vectors := readVectors(t)
	if keys := wrong(Ours, vectors); len(keys) != 0 {
		t.Errorf("%s: wrong for %q", Ours.Name, keys)
	}
	known := map[string][]string{"go-redis": {""}}
	for _, p := range Others {
		keys := wrong(p, vectors)
		t.Logf("%s: %d of %d wrong: %q", p.Name, len(keys), len(vectors), keys)
		// Not our bug, but what the documentation says of a peer has to stay true.
		if !slices.Equal(keys, known[p.Name]) {
			t.Errorf("%s: wrong for %q, want %q", p.Name, keys, known[p.Name])
		}
	}
}

// All must do the work that it is timed for.
func TestAllCallsSlotForEachKey(t *testing.T) {
	keys := []string{"foo", "bar", "subs:{42}", "{}{a}", "foo"}
	for _, p := range append([]Peer{Ours}, Others...) {
		var want uint16
		for _, key := range keys {
			want ^= p.Slot(key)
		}
		if got := p.All(keys); got != want {
			t.Errorf("%s: got %d, want %d", p.Name, got, want)
		}
	}
}
