package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/proxy"
)

// TestEmbeddedIsBounded: a shard takes more than it can hold, and holds no more.
func TestEmbeddedIsBounded(t *testing.T) {
	shards := proxy.Embedded(t.Context(), 3)
	if len(shards) != 3 {
		t.Fatalf("got %d shards, want 3", len(shards))
	}
	s := shards["shard-2"]
	value := strings.Repeat("x", 1<<20) // all share it
	const more = proxy.EmbeddedBytes>>20 + 20
	for i := range more {
		if _, err := s.Do(t.Context(), []string{"SET", fmt.Sprint("k", i), value, "PX", "60000"}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Do(t.Context(), []string{"DBSIZE"}); err != nil || n.(int64) > proxy.EmbeddedBytes>>20 || n.(int64) < proxy.EmbeddedBytes>>21 {
		t.Errorf("%v values of 1 MiB are held, of %d written: %v", n, more, err)
	}
}
