package harness

import (
	"context"
	"testing"
	"time"
)

func TestBoot(t *testing.T) {
	start := time.Now()
	c, err := StartCluster(context.Background(), Options{Replicas: 1, Private: true, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(start), c.Provider())
	ctx := context.Background()
	o, err := c.Owner(ctx, 100)
	t.Log(o, err)
	ms, err := c.Masters(ctx)
	t.Log(ms, err)
	if err := c.MoveSlots(ctx, c.Nodes()[1], 1, 2, 3); err != nil {
		t.Fatal(err)
	}
	if err := c.Failover(ctx, c.Nodes()[3]); err != nil {
		t.Fatal(err)
	}
	if err := c.Nodes()[1].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Nodes()[1].Restart(ctx, Empty); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	c.Close()
	t.Logf("\n%s", c.Timeline())
}
