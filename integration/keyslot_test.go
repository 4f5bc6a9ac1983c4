package integration

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/slotmap"
)

// seed is a new one each time, or the one to run again, which every failure
// prints.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if text := os.Getenv("SHARDKIT_SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SHARDKIT_SEED: %v", err)
		}
	}
	t.Logf("again: SHARDKIT_SEED=%d go test -race -run '^%s$' ./integration", s, strings.Split(t.Name(), "/")[0])
	return s
}

// Random keys, full of braces and of bytes that are no text, lie where the
// server says.
func TestSlotsOfRandomKeys(t *testing.T) {
	const keys, chunk = 20_000, 500
	c := harnesstest.SharedCluster(t)
	rnd := rand.New(rand.NewPCG(seed(t), 0))
	for range keys / chunk {
		var some []string
		var ask [][]string
		for range chunk {
			key := randomKey(rnd)
			some, ask = append(some, key), append(ask, []string{"CLUSTER", "KEYSLOT", key})
		}
		replies, err := c.Nodes()[0].Pipeline(t.Context(), ask...)
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range some {
			if got := int64(slotmap.Slot(key)); replies[i] != got {
				t.Fatalf("%q: slotmap says %d, the server %v", key, got, replies[i])
			}
			if replica := slotmap.KeyFor("active", key); int64(slotmap.Slot(replica)) != replies[i] {
				t.Fatalf("%q: its replica %q lies in slot %d, want %v", key, replica, slotmap.Slot(replica), replies[i])
			}
		}
	}
}

// randomKey is 0 to 40 bytes, half of which are braces as a rule.
func randomKey(rnd *rand.Rand) string {
	b := make([]byte, rnd.IntN(41))
	braces := rnd.IntN(4)
	for i := range b {
		switch n := rnd.IntN(4); {
		case n < braces:
			b[i] = "{}"[rnd.IntN(2)]
		case n == 3:
			b[i] = byte(rnd.IntN(256))
		default:
			b[i] = "ab:"[rnd.IntN(3)]
		}
	}
	return string(b)
}

// Each replica's key lies in its slot, says the server, for all 16384.
func TestSlotsOfReplicas(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	for from := 0; from < slotmap.Slots; from += 1024 {
		var ask [][]string
		for slot := from; slot < from+1024; slot++ {
			ask = append(ask, []string{"CLUSTER", "KEYSLOT", slotmap.KeyForSlot("active", uint16(slot))})
		}
		replies, err := c.Nodes()[0].Pipeline(t.Context(), ask...)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range replies {
			if v != int64(from+i) {
				t.Fatalf("%q: the server says slot %v, want %d", ask[i][2], v, from+i)
			}
		}
	}
}
