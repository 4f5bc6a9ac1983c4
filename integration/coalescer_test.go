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

// coalesced is a set that changes through a coalescer, and what it is to hold.
type coalesced struct {
	client          string
	b               replset.Backend
	s               *replset.Set
	co              *replset.Coalescer
	flushed, failed atomic.Int64
	model           map[string]bool
}

func newCoalesced(t *testing.T, c *harness.Cluster, client client, slots []uint16) *coalesced {
	t.Helper()
	x := &coalesced{client: client.name, model: map[string]bool{"start": true}}
	var err error
	if x.b, err = client.dial(t, c.Addrs(), login{}, 500*time.Millisecond); err != nil { // notices soon that servers are silent
		t.Fatal(err)
	}
	if x.s, err = replset.New(x.b, name(t)+client.name, &replset.Options{Slots: slots, Patience: time.Second}); err != nil {
		t.Fatal(err)
	}
	publish(t, x.s, "start")
	x.co, err = replset.NewCoalescer(x.s, &replset.CoalescerOptions{Tick: 50 * time.Millisecond, OnFlush: func(f replset.FlushStats) {
		x.flushed.Add(1)
		if f.Err != nil {
			x.failed.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *coalesced) change(t *testing.T, i int) {
	member := fmt.Sprint("m", i%50)
	if i%20 == 7 { // which no later change makes good
		member = fmt.Sprint("once", i)
	}
	var err error
	if x.model[member] = i%3 != 0; x.model[member] {
		err = x.co.Add(member)
	} else {
		err = x.co.Remove(member)
	}
	if err != nil {
		t.Errorf("%s: change %d: %v", x.client, i, err)
	}
}

// The whole cluster stops for three seconds and more under a coalescer of each
// client. Nothing that was taken in is lost, nothing newer is overwritten by what
// is tried again.
func TestCoalescerOverAFrozenCluster(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	slots := some(2048)
	var sets []*coalesced
	for _, client := range clients {
		sets = append(sets, newCoalesced(t, c, client, slots))
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	frozen, thawed := false, false
	start := time.Now()
	end := start.Add(20 * time.Second)
	for i := 0; time.Now().Before(end); i++ {
		noticed := true
		for _, x := range sets {
			x.change(t, i)
			noticed = noticed && x.failed.Load() > 0
		}
		switch at := time.Since(start); {
		case !frozen && at > 500*time.Millisecond:
			frozen = true
			for _, n := range c.Nodes() {
				if err := n.Freeze(); err != nil {
					t.Fatal(err)
				}
			}
		case !thawed && at > 3500*time.Millisecond && noticed:
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
	for _, x := range sets {
		if err := x.co.Close(ctx); err != nil {
			t.Fatalf("%s: %v", x.client, err)
		}
		if err := x.co.Add("late"); !errors.Is(err, replset.ErrCoalescerClosed) {
			t.Errorf("%s: Add after Close: got %v", x.client, err)
		}
		if x.failed.Load() == 0 {
			t.Errorf("%s: no flush of %d failed while the cluster was frozen", x.client, x.flushed.Load())
		}
		var want []string
		for m, in := range x.model {
			if in {
				want = append(want, m)
			}
		}
		slices.Sort(want)
		wantReplicas(t, x.b, x.s, slots, want...)
	}
}
