package replset

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/slotmap"
)

func TestNewRefusesMistakes(t *testing.T) {
	for _, name := range []string{"", "a{b", "a}b", "{x}", "{}"} {
		s, err := New(memory.New(), name, nil)
		var bad *slotmap.NameError
		if s != nil || !errors.As(err, &bad) || bad.Name != name {
			t.Errorf("New with the name %q: got %v, %v, want a *slotmap.NameError", name, s, err)
		}
	}
	if s, err := New(nil, "active", nil); s != nil || err == nil || !strings.HasPrefix(err.Error(), "replset: ") {
		t.Errorf("New without a backend: got %v, %v, want an error", s, err)
	}
}

func TestNewRefusesContradictions(t *testing.T) {
	for name, opts := range map[string]*Options{
		"negative Patience":     {Patience: -1},
		"negative ReadPatience": {ReadPatience: -1},
		"negative WaitReplicas": {WaitReplicas: -1},
		"negative StepTime":     {StepTime: -1},
		"a slot too high":       {Slots: []uint16{1, slotmap.Slots}},
	} {
		if s, err := New(memory.New(), "active", opts); s != nil || err == nil || !strings.HasPrefix(err.Error(), "replset: ") {
			t.Errorf("%s: got %v, %v, want an error", name, s, err)
		}
	}
}

func TestNewDoesNoIO(t *testing.T) {
	b := newHooks()
	for _, name := range []string{"a", "a:b", "with space", "\x00\xff", "ключ"} {
		if _, err := New(b, name, &Options{}); err != nil {
			t.Errorf("New with the name %q: %v", name, err)
		}
	}
	if n := b.calls.Load(); n != 0 {
		t.Errorf("New sent %d commands, want none", n)
	}
}

func TestKeyForLiesInTheSlotOfTheKey(t *testing.T) {
	s := newSet(t, memory.New(), nil)
	for _, key := range []string{"subs:{42}", "", "{}", "a}b{c", "{a}{b}", "plain", "\xff{\x00}"} {
		replica := s.KeyFor(key)
		if slotmap.Slot(replica) != slotmap.Slot(key) {
			t.Errorf("KeyFor(%q) = %q lies in slot %d, want %d", key, replica, slotmap.Slot(replica), slotmap.Slot(key))
		}
		if want := slotmap.KeyFor("active", key); replica != want {
			t.Errorf("KeyFor(%q) = %q, want %q", key, replica, want)
		}
		// What stands beside a replica must share its slot too.
		for _, suffix := range []string{stampSuffix, absentSuffix, leaseSuffix, tmpSuffix, sourceSuffix} {
			if slotmap.Slot(replica+suffix) != slotmap.Slot(key) {
				t.Errorf("%q does not lie in the slot of %q", replica+suffix, key)
			}
		}
	}
}

func TestNameAndHomeSlot(t *testing.T) {
	s := newSet(t, memory.New(), nil)
	if s.Name() != "active" || s.HomeSlot() != slotmap.Slot("active") {
		t.Errorf("got %q, %d", s.Name(), s.HomeSlot())
	}
}
