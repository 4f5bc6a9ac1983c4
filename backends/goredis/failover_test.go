package goredis_test

import (
	"context"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

// A killed master whose replica takes over is found again within 5 s by a client
// with default options, which by itself keeps dialling the dead one for up to a
// minute.
func TestKilledMasterIsReplaced(t *testing.T) {
	c := sharedCluster(t)
	const slot = 7000
	owner, _ := owners(t, c, slot)
	b := connect(t, c)
	key := keyIn(t, slot, "k")
	set := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := b.Do(ctx, key, []string{"SET", key, "v"})
		return err
	}
	eventually(t, "a write within its deadline, though it may have to connect", func() bool { return set() == nil })
	if err := owner.Kill(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	failed := 0
	eventually(t, "a write succeeds", func() bool {
		if set() != nil {
			failed++
			return false
		}
		return true
	})
	gap := time.Since(start)
	t.Logf("%s: %v from the kill to the next acknowledged write, %d failed", c.Version(), gap.Round(time.Millisecond), failed)
	if gap > 30*time.Second { // about 3 s; a minute where the map of the slots is not asked for again
		t.Errorf("it took %v, want some 3s", gap)
	}
	if failed == 0 {
		t.Error("no write failed: the master was not the slot's")
	}
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, w := range ways {
		if v, err := w.run(t.Context(), b, key, "GET", key); v != "v" || err != nil {
			t.Errorf("%s afterwards: got %v, %v", w.name, v, err)
		}
	}
	if err := owner.Restart(t.Context(), harness.Empty); err != nil { // empty: it has given its slots up
		t.Fatal(err)
	}
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}
