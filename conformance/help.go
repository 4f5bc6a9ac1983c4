package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// A way is a method of the backend, used for one command.
type way struct {
	name string
	run  func(ctx context.Context, b replset.Backend, key string, cmd ...string) (any, error)
}

var ways = []way{
	{"Do", func(ctx context.Context, b replset.Backend, key string, cmd ...string) (any, error) {
		return b.Do(ctx, key, cmd)
	}},
	{"Pipeline", func(ctx context.Context, b replset.Backend, key string, cmd ...string) (any, error) {
		return only(b.Pipeline(ctx, []string{key}, [][]string{cmd}), nil)
	}},
	{"Tx", func(ctx context.Context, b replset.Backend, key string, cmd ...string) (any, error) {
		return only(b.Tx(ctx, key, [][]string{cmd}))
	}},
}

func only(list []any, err error) (any, error) {
	switch {
	case err != nil:
		return nil, err
	case len(list) != 1:
		return nil, fmt.Errorf("%d elements for one command", len(list))
	}
	if err, failed := list[0].(error); failed {
		return nil, err
	}
	return list[0], nil
}

// code is the first word of a server's error, or "" for any other error.
func code(err error) string {
	word, _, ok := strings.Cut(err.Error(), " ")
	if !ok || word == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return word
}

// Do runs one command beside what is under test, and ends the case where it fails.
func (t *T) Do(b replset.Backend, cmd ...string) any {
	v, err := b.Do(t.ctx, cmd[1], cmd)
	if err != nil {
		t.Fatalf("%.100q: %v", cmd, err)
	}
	return v
}

// Need ends the case where a fault, or something else that it needs of the servers, could not be had.
func (t *T) Need(err error) {
	switch {
	case errors.Is(err, harness.ErrUnsupported):
		t.Unavailable("%v", err)
	case err != nil:
		t.Broken("%v", err)
	}
}

// Eventually polls until is returns true, and ends the case when that takes longer than d, scaled.
func (t *T) Eventually(d time.Duration, what string, is func() bool) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(t.Scale(d)); ; <-tick.C {
		over := time.Now().After(deadline) // before it looks: a stall after that counts for nothing
		if is() {
			return
		}
		if over || t.ctx.Err() != nil {
			t.Fatalf("not after %v: %s", t.Scale(d), what)
		}
	}
}

// Thrice runs check until it returns "", three times at most, and ends the case with what it returns then. It is for what
// a machine that stalls spoils once, and a backend that is wrong each time.
func (t *T) Thrice(check func() string) {
	wrong := ""
	for range 3 {
		if wrong = check(); wrong == "" {
			return
		}
	}
	t.Fatalf("%s", wrong)
}

// Set returns a set of the case's own.
func (t *T) Set(b replset.Backend, name string, o replset.Options) *replset.Set {
	s, err := replset.New(b, t.Prefix()+name, &o)
	if err != nil {
		t.Broken("%v", err)
	}
	return s
}

// Publish publishes, and ends the case where it fails.
func (t *T) Publish(s *replset.Set, members ...string) {
	if err := s.Publish(t.ctx, members); err != nil {
		t.Fatalf("Publish of %d members: %v", len(members), err)
	}
}

// WantReplicas compares the members of the replicas in the slots, as the servers have them, with what they should be.
func (t *T) WantReplicas(when string, s *replset.Set, slots []uint16, members ...string) {
	want := sorted(members)
	wrong := 0
	for chunk := range slices.Chunk(slots, 512) {
		keys, cmds := make([]string, len(chunk)), make([][]string, len(chunk))
		for i, slot := range chunk {
			keys[i] = slotmap.KeyForSlot(s.Name(), slot)
			cmds[i] = []string{"SMEMBERS", keys[i]}
		}
		for i, v := range t.Backend().Pipeline(t.ctx, keys, cmds) {
			if got := listOf(v, nil); got != want {
				if wrong++; wrong <= 3 {
					t.Errorf("%s: slot %d holds %.200s, want %.200s", when, chunk[i], got, want)
				}
			}
		}
	}
	if wrong > 3 {
		t.Errorf("%s: ... and %d slots more", when, wrong-3)
	}
}

// Spread returns n slots over all masters.
func Spread(n int) []uint16 {
	slots := make([]uint16, n)
	for i := range slots {
		slots[i] = uint16(i * slotmap.Slots / n)
	}
	return slots
}

// sorted writes members in an order to compare by.
func sorted(members []string) string {
	members = slices.Clone(members)
	slices.Sort(members)
	return fmt.Sprintf("%q", members)
}

// listOf writes a reply that is a list of members, or what it is instead.
func listOf(v any, err error) string {
	if err != nil {
		return err.Error()
	}
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprintf("%T %v", v, v)
	}
	members := make([]string, len(list))
	for i, m := range list {
		if members[i], ok = m.(string); !ok {
			return fmt.Sprintf("a list with the %T %v", m, m)
		}
	}
	return sorted(members)
}

func membersOf(members []string, err error) string {
	if err != nil {
		return err.Error()
	}
	return sorted(members)
}

// statistic reads a number of an INFO reply that follows the words.
func statistic(info any, words string) int {
	text, _ := info.(string)
	_, after, _ := strings.Cut(text, words)
	n := 0
	for _, digit := range after {
		if digit < '0' || digit > '9' {
			break
		}
		n = 10*n + int(digit-'0')
	}
	return n
}
