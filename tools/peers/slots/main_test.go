package main

import (
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	results, err := run(t.Context(), 10*time.Millisecond)
	if err != nil || len(results) != len(keySets) {
		t.Fatalf("got %d results for %d sets of keys, %v", len(results), len(keySets), err)
	}
	for _, r := range results {
		for _, name := range []string{"slotmap", "go-redis", "rueidis"} {
			v := r.Variant(name)
			if v == nil || v.Response.Count == 0 || v.Errors != 0 || v.Counters["allocs"] > 0.5 {
				t.Errorf("%s, %s: got %+v, want operations without errors or allocations", r.Scenario, name, v)
			}
		}
	}
}
