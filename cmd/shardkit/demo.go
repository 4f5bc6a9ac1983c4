package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

type demoCmd struct {
	Set      demoSetCmd      `cmd:"" default:"withargs" help:"A replicated set, on a Redis Cluster. The default."`
	Failover demoFailoverCmd `cmd:"" help:"What programs with a cache see when a shard is killed, and when it comes back with old data."`
	Hotkeys  demoHotkeysCmd  `cmd:"" help:"Which shard bears the load of keys that everybody reads, without copies and with them."`
	Remap    demoRemapCmd    `cmd:"" help:"What a cache loses when a shard comes or goes: by the ring, by hash modulo shards."`
}

type demoSetCmd struct {
	server
}

func (demoSetCmd) Help() string {
	return `Without --addr it starts three servers of its own and ends them. With --addr it
uses your cluster, under the name shardkit-demo, and leaves no key behind.

Examples:
  shardkit demo
  shardkit demo --addr 127.0.0.1:7000`
}

func (c demoSetCmd) Run(ctx context.Context, con console) (err error) {
	d := demo{con: con, name: "active", key: "subs:{1234567890}", dest: "out:{1234567890}"}
	var cluster *harness.Cluster // nil: somebody else's
	var client *redis.ClusterClient
	if len(c.Addr) == 0 {
		start := time.Now()
		fmt.Fprintln(con.out, "Starting three Redis masters, about 2 s.")
		if cluster, err = harness.StartCluster(ctx, harness.Options{Private: true}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.end(cluster)) }()
		fmt.Fprintf(con.out, "  %s, ready in %s\n", cluster.Provider(), seconds(time.Since(start)))
		client = redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ClusterStateReloadInterval: time.Second})
	} else {
		if client, err = c.connect(ctx); err != nil {
			return err
		}
		for _, name := range []*string{&d.name, &d.key, &d.dest} {
			*name = "shardkit-demo-" + *name
		}
	}
	defer client.Close()
	d.client = client
	if err := d.play(ctx, cluster); err != nil {
		if ctx.Err() != nil {
			return errors.New("demo: interrupted")
		}
		return err
	}
	return nil
}

// demo is one performance.
type demo struct {
	con    console
	client *redis.ClusterClient
	set    *replset.Set

	name string // of the set, and of the set as one key in a slot of its own
	key  string // the sharded set
	dest string // where IntersectInto puts its answer
}

func (d *demo) play(ctx context.Context, cluster *harness.Cluster) error {
	defer d.cleanUp()
	for _, step := range []func(context.Context) error{d.problem, d.publish, d.questions} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if cluster != nil {
		if err := d.reshard(ctx, cluster); err != nil {
			return err
		}
	}
	return d.failures(ctx)
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.con.out, format+"\n", args...) }

func (d *demo) problem(ctx context.Context) error {
	d.say("\nThe problem: a user's subscriptions are in one slot, the set of active accounts in another.")
	if err := d.client.SAdd(ctx, d.key, "alice", "bob", "carol", "dave", "erin").Err(); err != nil {
		return err
	}
	if err := d.client.SAdd(ctx, d.name, "bob", "erin", "zoe").Err(); err != nil {
		return err
	}
	d.say("  SADD %s alice bob carol dave erin", d.key)
	d.say("  SADD %s bob erin zoe", d.name)
	err := d.client.SInter(ctx, d.key, d.name).Err()
	if err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT") {
		return fmt.Errorf("demo: the server should have refused SINTER over two slots, but said: %v", err)
	}
	d.say("  SINTER %s %s\n  -> %s", d.key, d.name, err)
	return nil
}

func (d *demo) publish(ctx context.Context) error {
	d.say("\nThe answer: one replica of the small set in each of the %s slots.", thousands(slotmap.Slots))
	bar := newBar(d.con, "slots")
	set, err := replset.New(goredis.New(d.client), d.name, &replset.Options{
		Progress: func(p replset.Progress) { bar.update(p.Done, p.Total) },
	})
	if err != nil {
		return err
	}
	d.set = set
	if err := set.Publish(ctx, []string{"bob", "erin", "zoe"}); err != nil {
		return err
	}
	bar.finish(slotmap.Slots, slotmap.Slots)
	slot := slotmap.Slot(d.key)
	d.say("  %s is in slot %d, and so is %s: of all numbers", d.key, slot, set.KeyFor(d.key))
	d.say("  that hash to slot %d, %s is the smallest.", slot, slotmap.Tag(slot))
	return nil
}

func (d *demo) questions(ctx context.Context) error {
	d.say("\nNow ask. On the right, what the server's MONITOR saw; the replica's proof travels with it.")
	return d.ask(ctx)
}

// ask puts every question, and shows and checks the answers.
func (d *demo) ask(ctx context.Context) error {
	questions := []struct {
		name, command string
		want          string
		ask           func() (any, error)
	}{
		{"Intersect", "SINTER", "[bob erin]", func() (any, error) { return sorted(d.set.Intersect(ctx, d.key)) }},
		{"Count", "SINTERCARD", "2", func() (any, error) { return d.set.Count(ctx, d.key, 0) }},
		{"Without", "SDIFF", "[alice carol dave]", func() (any, error) { return sorted(d.set.Without(ctx, d.key)) }},
		{"IntersectInto", "SINTERSTORE", "2", func() (any, error) { return d.set.IntersectInto(ctx, d.dest, d.key) }},
	}
	owner, err := d.owner(ctx)
	if err != nil {
		return err
	}
	for _, q := range questions {
		var answer any
		seen, err := watch(ctx, owner, q.command, func() (err error) {
			answer, err = q.ask()
			return err
		})
		if err != nil {
			return err
		}
		got := fmt.Sprint(answer)
		if got != q.want {
			return fmt.Errorf("demo: %s answered %s, not %s", q.name, got, q.want)
		}
		d.say("  %-13s  %-18s  %s", q.name, got, seen)
	}
	return nil
}

// owner returns how to connect to the master that owns the key's slot now.
func (d *demo) owner(ctx context.Context) (*redis.Options, error) {
	of, err := owners(ctx, d.client)
	if err != nil {
		return nil, err
	}
	node, err := d.client.MasterForKey(ctx, d.key)
	if err != nil {
		return nil, err
	}
	o := *node.Options()
	o.Addr = of(slotmap.Slot(d.key))
	return &o, nil
}

func sorted(members []string, err error) ([]string, error) {
	slices.Sort(members)
	return members, err
}

func (d *demo) reshard(ctx context.Context, cluster *harness.Cluster) error {
	slot := int(slotmap.Slot(d.key))
	from, err := cluster.Owner(ctx, slot)
	if err != nil {
		return err
	}
	masters, err := cluster.Masters(ctx)
	if err != nil {
		return err
	}
	to := masters[0]
	if to == from {
		to = masters[1]
	}
	stampKey := d.set.KeyFor(d.key) + ":stamp"
	before, err := d.client.Get(ctx, stampKey).Result()
	if err != nil {
		return err
	}
	d.say("\nThe cluster reshards: slot %d moves, live, from %s to %s.", slot, from.Addr(), to.Addr())
	start := time.Now()
	if err := cluster.MoveSlots(ctx, to, slot); err != nil {
		return err
	}
	if now, err := cluster.Owner(ctx, slot); err != nil || now != to {
		return fmt.Errorf("demo: slot %d is at %v after the move, not at %v: %w", slot, now, to, err)
	}
	after, err := d.client.Get(ctx, stampKey).Result()
	if err != nil {
		return err
	}
	if before != after {
		return fmt.Errorf("demo: the replica was written again during the move: %q, before %q", after, before)
	}
	d.say("  moved in %s; the replica went with its slot. Nothing was published again: it is still", seconds(time.Since(start)))
	d.say("  write %s. The same questions, the same answers:", strings.Fields(after)[1])
	return d.ask(ctx)
}

func (d *demo) failures(ctx context.Context) error {
	d.say("\nWhat goes wrong says so.")
	var cross *slotmap.CrossSlotError
	if _, err := d.set.Intersect(ctx, d.key, "other:{7}"); errors.As(err, &cross) {
		d.say("  A key of another slot, before anything is sent:\n%s", wrap(err.Error(), "    "))
	} else {
		return fmt.Errorf("demo: a key of another slot should be refused, but: %v", err)
	}
	if err := d.client.Del(ctx, d.set.KeyFor(d.key)).Err(); err != nil {
		return err
	}
	if _, err := d.set.Without(ctx, d.key); errors.Is(err, replset.ErrReplicaMissing) {
		d.say("  A replica that someone deleted; never an empty set, so a blocklist fails closed:\n%s", wrap(err.Error(), "    "))
	} else {
		return fmt.Errorf("demo: a missing replica should be an error, but: %v", err)
	}
	return nil
}

// cleanUp leaves no key on a cluster that goes on living.
func (d *demo) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if d.set != nil {
		_ = d.set.Clear(ctx)
	}
	if pipe := d.client.Pipeline(); d.set != nil {
		for slot := range uint16(slotmap.Slots) {
			pipe.Del(ctx, slotmap.KeyForSlot(d.name, slot)+":stamp")
		}
		_, _ = pipe.Exec(ctx)
	}
	d.client.Del(ctx, d.key)
	d.client.Del(ctx, d.dest)
	d.client.Del(ctx, d.name)
}

// end stops the demo's servers and says so.
func (d *demo) end(cluster *harness.Cluster) error {
	nodes := cluster.Nodes()
	if err := cluster.Close(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, n := range nodes {
		if n.Alive(ctx) {
			return fmt.Errorf("demo: %s still answers after the end", n)
		}
	}
	d.say("\nThe three servers are gone, and their files.")
	return nil
}
