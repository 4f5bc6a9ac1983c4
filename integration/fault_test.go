package integration

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// Every server forgets the scripts in the middle of a write.
func TestScriptFlushDuringAWrite(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	for _, rung := range rungs[:3] { // the last one has no scripts
		t.Run(strings.ReplaceAll(rung.name, " ", "-"), func(t *testing.T) {
			eachClient(t, c, func(t *testing.T, b replset.Backend) {
				slots := some(512)
				steps := 0
				s := newSet(t, rung.wrap(b), replset.Options{Slots: slots, Progress: func(replset.Progress) {
					if steps++; steps%5 == 1 {
						tell(t, c.Nodes(), "SCRIPT", "FLUSH")
					}
				}})
				tell(t, c.Nodes(), "SCRIPT", "FLUSH")
				publish(t, s, "a", "b")
				wantReplicas(t, b, s, slots, "a", "b")
				if err := s.Apply(t.Context(), replset.Delta{Add: []string{"c"}, Remove: []string{"a"}}); err != nil {
					t.Fatal(err)
				}
				wantReplicas(t, b, s, slots, "b", "c")
			})
		})
	}
}

// A user who may not run scripts, on all nodes or on one, writes by
// transactions; one who may not RESTORE, by scripts that do without.
func TestScriptsRefusedByACL(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	for _, user := range []struct {
		name  string
		rules []string
		nodes []*harness.Node // where the rules hold; the user may do all elsewhere
	}{
		{"no scripts", []string{"-@scripting"}, c.Nodes()},
		{"no scripts on one node", []string{"-@scripting"}, c.Nodes()[1:2]},
		{"no restore", []string{"-restore"}, c.Nodes()},
		{"no restore and dump on one node", []string{"-restore", "-dump"}, c.Nodes()[:1]},
		{"no dangerous commands", []string{"-@dangerous", "+cluster", "+client"}, c.Nodes()},
	} {
		t.Run(strings.ReplaceAll(user.name, " ", "-"), func(t *testing.T) {
			as := login{name: "user-" + strings.ReplaceAll(user.name, " ", "-"), password: "secret"}
			tell(t, c.Nodes(), "ACL", "SETUSER", as.name, "reset", "on", ">"+as.password, "~*", "&*", "+@all")
			tell(t, user.nodes, append([]string{"ACL", "SETUSER", as.name}, user.rules...)...)
			t.Cleanup(func() { tell(t, c.Nodes(), "ACL", "DELUSER", as.name) })
			for _, client := range clients {
				t.Run(client.name, func(t *testing.T) {
					b := open(t, client.name, c)
					slots := some(48)
					s := newSet(t, openAs(t, client.name, c, as), replset.Options{Slots: slots})
					for _, w := range writes(t)[:7] {
						if err := w.write(s); err != nil {
							t.Fatalf("%s: %v", w.name, err)
						}
						if w.want == nil {
							wantCleared(t, b, s, slots)
						} else {
							wantReplicas(t, b, s, slots, w.want...)
						}
						if t.Failed() {
							t.Fatalf("after %s", w.name)
						}
					}
					key := slotmap.KeyForSlot(name(t)+"subs", 0)
					do(t, b, "SADD", key, "1000000", "x") // the last write published numbers
					if n, err := s.IntersectInto(t.Context(), key+"into", key); n != 1 || err != nil {
						t.Errorf("IntersectInto: %d, %v", n, err)
					}
				})
			}
		})
	}
}

// Replicas that are deleted, changed or replaced behind our back: reads say so,
// Verify names them, a delta or Reconcile repairs them, and nothing else is
// written.
func TestReplicasSpoiltBehindOurBack(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		slots := some(64)
		s := newSet(t, b, replset.Options{Slots: slots})
		key := func(i int) string { return slotmap.KeyForSlot(s.Name(), slots[i]) }
		spoil := func() {
			do(t, b, "DEL", key(3))
			do(t, b, "DEL", key(7)+stampSuffix)
			do(t, b, "DEL", key(11), key(11)+stampSuffix)
			do(t, b, "SREM", key(15), "a")
			do(t, b, "SADD", key(19), "x")
			do(t, b, "SET", key(23), "no set any more")
			do(t, b, "DEL", key(27))
			do(t, b, "SADD", key(27), "old", "a")
			do(t, b, "SET", key(27)+stampSuffix, "sk1 1 2 "+digest("old", "a"))
			do(t, b, "SREM", key(31), "a", "b") // of which the delta below knows a
		}
		publish(t, s, "a", "b", "c")
		spoil()
		for i, want := range map[int]error{3: replset.ErrReplicaMissing, 7: replset.ErrReplicaMissing, 11: replset.ErrReplicaMissing,
			15: replset.ErrReplicaDrifted, 19: replset.ErrReplicaDrifted, 2: nil} {
			if _, err := s.Members(t.Context(), key(i)); !errors.Is(err, want) {
				t.Errorf("a read in slot %d: %v, want %v", slots[i], err, want)
			}
		}
		if got, err := s.Members(t.Context(), key(23)); err == nil {
			t.Errorf("a read of a replica that is a string: %q", got)
		}
		found, err := s.Verify(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[uint16]replset.DriftKind{}
		for _, d := range found.Drifted {
			kinds[d.Slot] = d.Kind
		}
		want := map[uint16]replset.DriftKind{slots[3]: replset.Missing, slots[7]: replset.Foreign, slots[11]: replset.Missing,
			slots[15]: replset.Content, slots[19]: replset.Extra, slots[23]: replset.WrongType,
			slots[27]: replset.Older, slots[31]: replset.Content}
		if fmt.Sprint(kinds) != fmt.Sprint(want) {
			t.Errorf("Verify found %v, want %v", kinds, want)
		}

		// A set without its stamp does not carry our mark: it takes Adopt. A drift
		// that a delta cannot see, since it concerns other members, stays.
		do(t, b, "SADD", key(15), "a")
		do(t, b, "SREM", key(19), "x")
		var partly *replset.WriteError
		if err := s.Apply(t.Context(), replset.Delta{Add: []string{"d"}, Remove: []string{"a"}}); !errors.As(err, &partly) || len(partly.Failed) != 1 || partly.Failed[0].Slot != slots[7] {
			t.Errorf("apply: %v, want slot %d named alone", err, slots[7])
		}
		wantReplicas(t, b, s, slices.DeleteFunc(slices.Clone(slots), func(slot uint16) bool { return slot == slots[7] }), "b", "c", "d")
		adopting := newSet(t, b, replset.Options{Slots: slots, Adopt: true})
		if _, err := adopting.Reconcile(t.Context(), nil); err != nil {
			t.Errorf("reconcile: %v", err)
		}
		wantReplicas(t, b, s, slots, "b", "c", "d")

		spoil()
		if _, err := adopting.Reconcile(t.Context(), nil); err != nil {
			t.Errorf("reconcile: %v", err)
		}
		wantReplicas(t, b, s, slots, "b", "c", "d")
	})
}

// offline is a backend that runs no transaction: the home replica cannot be read.
type offline struct{ replset.Backend }

var errOffline = errors.New("no transaction today")

func (offline) Tx(context.Context, string, [][]string) ([]any, error) { return nil, errOffline }

// A delta that finds a replica spoilt, and cannot copy the home replica there, names its slot; and the next one does not
// take it for right.
func TestDriftIsRememberedUntilItIsRepaired(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		slots := some(64)
		s := newSet(t, b, replset.Options{Slots: slots})
		publish(t, s, "a", "b", "c")
		key := slotmap.KeyForSlot(s.Name(), slots[31])
		do(t, b, "SREM", key, "a", "b")
		while, err := replset.New(offline{b}, s.Name(), &replset.Options{Slots: slots, Patience: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var partly *replset.WriteError
		if err := while.Apply(t.Context(), replset.Delta{Add: []string{"d"}, Remove: []string{"a"}}); !errors.As(err, &partly) ||
			len(partly.Failed) != 1 || partly.Failed[0].Slot != slots[31] || !errors.Is(err, errOffline) {
			t.Errorf("apply: %v, want slot %d named alone, for %q", err, slots[31], errOffline)
		}
		if got, err := s.Members(t.Context(), key); !errors.Is(err, replset.ErrReplicaDrifted) {
			t.Errorf("a read there: %q, %v, want ErrReplicaDrifted", got, err)
		}
		if err := s.Add(t.Context(), "e"); err != nil {
			t.Errorf("the next write: %v", err)
		}
		wantReplicas(t, b, s, slots, "b", "c", "d", "e")
	})
}

// digest is what a stamp says of the members: the sum of the first six bytes of
// each one's SHA-1.
func digest(members ...string) string {
	var d uint64
	for _, m := range members {
		sum := sha1.Sum([]byte(m))
		for i, b := range sum[:6] {
			d += uint64(b) << (8 * (5 - i))
		}
	}
	return fmt.Sprintf("%012x", d&(1<<48-1))
}

// A master dies in the middle of writes. Each write reaches every slot, or names
// those that it did not; and when the replica has taken over, all slots are alike
// again.
func TestMasterKilledDuringWrites(t *testing.T) {
	c := faultCluster(t)
	victim, _ := owners(t, c, 8000)
	type writer struct {
		client string
		b      replset.Backend
		s      *replset.Set
		writes int
		named  int
		last   []string
	}
	var writers []*writer
	for _, client := range clients {
		b := open(t, client.name, c)
		s, err := replset.New(b, name(t)+client.name, &replset.Options{Slots: some(4096), Patience: 8 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		publish(t, s, "gen-0")
		writers = append(writers, &writer{client: client.name, b: b, s: s, last: []string{"gen-0"}})
	}
	var wg sync.WaitGroup
	killed := make(chan struct{})
	for _, w := range writers {
		wg.Go(func() {
			var once sync.Once
			enough := 0
			for g := 1; enough < 2; g++ {
				if g == 2 { // the next one is under way when the master dies
					go once.Do(func() {
						time.Sleep(time.Duration(len(w.client)) * 3 * time.Millisecond) // not a wait: a different moment for each
						killed <- struct{}{}
					})
				}
				members := []string{fmt.Sprint("gen-", g), "common"}
				err := w.s.Publish(t.Context(), members)
				w.writes++
				var partly *replset.WriteError
				var home *replset.SlotError
				switch {
				case err == nil:
					w.last = members
					if g > 2 {
						enough++
					}
				case errors.As(err, &partly):
					w.named += len(partly.Failed)
					t.Logf("%s: %v", w.client, err)
				case errors.As(err, &home) && home.Slot == w.s.HomeSlot():
				default:
					t.Errorf("%s: %v, which names no slot", w.client, err)
				}
			}
		})
	}
	<-killed
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	go func() { <-killed }()
	wg.Wait()
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, w := range writers {
		t.Logf("%s: %d writes, %d slots named in them", w.client, w.writes, w.named)
		// The last write succeeded on the masters of its moment, all of which live.
		wantReplicas(t, w.b, w.s, some(4096), w.last...)
	}
	if err := victim.Restart(t.Context(), harness.Empty); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The home slot's master dies and takes its last numbers with it: its replica
// had been cut off. The next write ends with all slots alike all the same.
func TestHomeLosesItsLastWrites(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	for _, rung := range rungs {
		t.Run(strings.ReplaceAll(rung.name, " ", "-"), func(t *testing.T) {
			eachClient(t, c, func(t *testing.T, b replset.Backend) {
				slots := some(64)
				s := newSet(t, rung.wrap(b), replset.Options{Slots: slots})
				publish(t, s, "a", "b")
				home := slotmap.KeyForSlot(s.Name(), s.HomeSlot())
				old := do(t, b, "GET", home+stampSuffix).(string)
				publish(t, s, "lost")
				// As a server replica that was promoted without the last write.
				do(t, b, "DEL", home)
				do(t, b, "SADD", home, "a", "b")
				do(t, b, "SET", home+stampSuffix, old)
				// And its clock is behind: numbers must grow all the same.
				ahead := fmt.Sprintf("sk1 %d 1 000000000000", time.Now().Add(time.Hour).UnixMicro())
				for _, i := range []int{3, 30, 60} {
					do(t, b, "SET", slotmap.KeyForSlot(s.Name(), slots[i])+stampSuffix, ahead)
				}
				if err := s.Add(t.Context(), "c"); err != nil {
					t.Fatal(err)
				}
				wantReplicas(t, b, s, slots, "a", "b", "c")
			})
		})
	}
}

// A slot without a master is named as such; the others are written and read.
func TestSlotWithoutAMaster(t *testing.T) {
	c := faultCluster(t)
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	const slot = 12345
	owner, _ := owners(t, c, slot)
	tell(t, c.Nodes(), "CLUSTER", "DELSLOTS", fmt.Sprint(slot))
	defer func() {
		tell(t, []*harness.Node{owner}, "CLUSTER", "ADDSLOTS", fmt.Sprint(slot))
		if err := c.WaitReady(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	t.Run("meanwhile", func(t *testing.T) { // all at once: most of the time they wait
		for _, rung := range rungs {
			for _, client := range clients {
				t.Run(strings.ReplaceAll(rung.name, " ", "-")+"/"+client.name, func(t *testing.T) {
					t.Parallel()
					b := open(t, client.name, c)
					slots := append(some(32), slot)
					s := newSet(t, rung.wrap(b), replset.Options{Slots: slots, Patience: 400 * time.Millisecond, ReadPatience: 50 * time.Millisecond})
					err := s.Publish(t.Context(), []string{"a"})
					var partly *replset.WriteError
					if !errors.As(err, &partly) || !errors.Is(err, replset.ErrNoOwner) || len(partly.Failed) != 1 || partly.Failed[0].Slot != slot {
						t.Fatalf("got %v, want slot %d named with ErrNoOwner", err, slot)
					}
					wantReplicas(t, b, s, some(32), "a")
					if _, err := s.Members(t.Context(), slotmap.KeyForSlot("x", slot)); !errors.Is(err, replset.ErrNoOwner) {
						t.Errorf("a read there: %v, want ErrNoOwner", err)
					}
				})
			}
		}
	})
}

// WaitReplicas counts what server replicas have acknowledged.
func TestWaitReplicas(t *testing.T) {
	c := faultCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		slots := some(16)
		s := newSet(t, b, replset.Options{Slots: slots, WaitReplicas: 1})
		publish(t, s, "a")
		wantReplicas(t, b, s, slots, "a")
		s = newSet(t, b, replset.Options{Slots: slots, WaitReplicas: 2})
		err := s.Publish(t.Context(), []string{"b"})
		var partly *replset.WriteError
		if !errors.As(err, &partly) || !errors.Is(err, replset.ErrUnderReplicated) || partly.Written != 0 {
			t.Errorf("with two server replicas asked for and one there: %v", err)
		}
		wantReplicas(t, b, s, slots, "b") // written all the same
	})
}

// A read by a server replica is the published set, also right after the write,
// when the copy is late.
func TestReadReplicas(t *testing.T) {
	c := faultCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		if _, can := b.(replset.ReplicaReader); !can {
			t.Skip("this backend cannot read from server replicas")
		}
		s := newSet(t, b, replset.Options{Slots: some(16), ReadReplicas: true})
		for i := range 5 {
			publish(t, s, fmt.Sprint("gen-", i))
			for _, slot := range some(16) {
				got, err := s.Members(t.Context(), slotmap.KeyForSlot("x", slot))
				if err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "gen-") {
					t.Errorf("slot %d: %q, %v", slot, got, err)
				}
			}
		}
		near := slotmap.KeyForSlot("x", 0)
		within(t, time.Minute, "the copy has the last write", func() bool {
			got, err := s.Members(t.Context(), near)
			return err == nil && sorted(got) == `["gen-4"]`
		})
		// Servers leave out of the slot map a replica that has replicated nothing
		// yet, so in a new cluster clients know of none at first.
		tell(t, c.Nodes(), "CONFIG", "RESETSTAT")
		within(t, time.Minute, "a server replica is asked", func() bool {
			if _, err := s.Members(t.Context(), near); err != nil {
				t.Error(err)
			}
			for _, n := range c.Nodes() {
				role, err := n.Do(t.Context(), "ROLE")
				stats, err2 := n.Do(t.Context(), "INFO", "commandstats")
				if err == nil && err2 == nil && role.([]any)[0] == "slave" && strings.Contains(stats.(string), "cmdstat_smembers") {
					return true
				}
			}
			return false
		})
	})
}

// A server that is in no cluster says so, whatever is asked.
func TestServerOutsideAnyCluster(t *testing.T) {
	s := harnesstest.SharedShards(t)
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			b, err := client.open(t, s.Addrs()[:1], login{})
			if err != nil {
				if !strings.Contains(err.Error(), "cluster") {
					t.Errorf("got %v, want an error that says cluster", err)
				}
				return
			}
			set := newSet(t, b, replset.Options{})
			_, read := set.Members(t.Context(), "x")
			_, into := set.IntersectInto(t.Context(), "{x}y", "x")
			for what, err := range map[string]error{
				"publish": set.Publish(t.Context(), []string{"a"}), "add": set.Add(t.Context(), "a"), "clear": set.Clear(t.Context()),
				"members": read, "into": into,
			} {
				if !errors.Is(err, replset.ErrNotCluster) {
					t.Errorf("%s: got %v, want ErrNotCluster", what, err)
				}
			}
		})
	}
}
