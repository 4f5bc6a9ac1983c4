package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
)

// The whole cluster stops for three seconds and more under a coalescer. Nothing
// that was taken in is lost, nothing newer is overwritten by what is tried again.
func TestCoalescerOverAFrozenCluster(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	eachHastyClient(t, c, func(t *testing.T, b replset.Backend) {
		s := newSet(t, b, replset.Options{Patience: time.Second})
		publish(t, s, "start")
		var failed, flushed atomic.Int64
		co, err := replset.NewCoalescer(s, &replset.CoalescerOptions{Tick: 50 * time.Millisecond, OnFlush: func(f replset.FlushStats) {
			flushed.Add(1)
			if f.Err != nil {
				failed.Add(1)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		model := map[string]bool{"start": true}
		change := func(i int) {
			member := fmt.Sprint("m", i%50)
			var err error
			if model[member] = i%3 != 0; model[member] {
				err = co.Add(member)
			} else {
				err = co.Remove(member)
			}
			if err != nil {
				t.Errorf("change %d: %v", i, err)
			}
		}
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		frozen, thawed := false, false
		start := time.Now()
		end := start.Add(20 * time.Second)
		for i := 0; time.Now().Before(end); i++ {
			change(i)
			switch at := time.Since(start); {
			case !frozen && at > 500*time.Millisecond:
				frozen = true
				for _, n := range c.Nodes() {
					if err := n.Freeze(); err != nil {
						t.Fatal(err)
					}
				}
			case !thawed && at > 3500*time.Millisecond && failed.Load() > 0:
				thawed, end = true, time.Now().Add(1500*time.Millisecond)
				for _, n := range c.Nodes() {
					if err := n.Thaw(); err != nil {
						t.Fatal(err)
					}
				}
			}
			<-tick.C
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := c.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
		if err := co.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if err := co.Add("late"); !errors.Is(err, replset.ErrCoalescerClosed) {
			t.Errorf("Add after Close: got %v", err)
		}
		if failed.Load() == 0 {
			t.Errorf("no flush of %d failed while the cluster was frozen", flushed.Load())
		}
		var want []string
		for m, in := range model {
			if in {
				want = append(want, m)
			}
		}
		slices.Sort(want)
		wantReplicas(t, b, s, all, want...)
	})
}
