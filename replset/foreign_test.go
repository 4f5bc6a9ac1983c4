package replset

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/slotmap"
)

// foreigners are keys that someone else may hold at a replica's place.
var foreigners = map[string]struct {
	put   func(t *testing.T, b Backend, replica string)
	key   func(replica string) string
	still func(t *testing.T, b Backend, replica string) bool
}{
	"a set": {
		func(t *testing.T, b Backend, replica string) { do(t, b, "SADD", replica, "theirs") },
		func(replica string) string { return replica },
		func(t *testing.T, b Backend, replica string) bool {
			return fmt.Sprint(do(t, b, "SMEMBERS", replica)) == "[theirs]"
		},
	},
	"a string": {
		func(t *testing.T, b Backend, replica string) { do(t, b, "SET", replica, "theirs") },
		func(replica string) string { return replica },
		func(t *testing.T, b Backend, replica string) bool { return do(t, b, "GET", replica) == "theirs" },
	},
	"a string at the stamp": {
		func(t *testing.T, b Backend, replica string) { do(t, b, "SET", replica+stampSuffix, "theirs") },
		func(replica string) string { return replica + stampSuffix },
		func(t *testing.T, b Backend, replica string) bool {
			return do(t, b, "GET", replica+stampSuffix) == "theirs"
		},
	},
	"a set at the stamp": {
		func(t *testing.T, b Backend, replica string) { do(t, b, "SADD", replica+stampSuffix, "theirs") },
		func(replica string) string { return replica + stampSuffix },
		func(t *testing.T, b Backend, replica string) bool {
			return fmt.Sprint(do(t, b, "SMEMBERS", replica+stampSuffix)) == "[theirs]"
		},
	},
}

// What does not carry our mark is left alone, at home and elsewhere, by every
// write.
func TestForeignKeysAreLeftAlone(t *testing.T) {
	for what, f := range foreigners {
		for _, where := range []string{"home", "elsewhere"} {
			for op, write := range map[string]func(s *Set) error{
				"publish":       func(s *Set) error { return s.Publish(t.Context(), []string{"a"}) },
				"publish empty": func(s *Set) error { return s.Publish(t.Context(), nil) },
				"clear":         func(s *Set) error { return s.Clear(t.Context()) },
			} {
				t.Run(strings.ReplaceAll(what+" "+where+" "+op, " ", "-"), func(t *testing.T) {
					b := memory.New()
					s := newFew(t, b, Options{})
					slot := s.home
					if where == "elsewhere" {
						slot = s.otherSlot(7)
					}
					replica := s.replicaKey(slot)
					f.put(t, b, replica)
					err := write(s)
					var foreign *ForeignKeyError
					if !errors.As(err, &foreign) || foreign.Key != f.key(replica) {
						t.Fatalf("got %v, want a *ForeignKeyError that names %q", err, f.key(replica))
					}
					if !f.still(t, b, replica) {
						t.Errorf("the foreign key was changed")
					}
					var partly *WriteError
					if where == "home" {
						if errors.As(err, &partly) {
							t.Errorf("the home slot refused, and yet others were written: %v", err)
						}
						return
					}
					if !errors.As(err, &partly) || failedSlots(partly) != fmt.Sprint(slot) || partly.Written != len(s.slots.list)-1 {
						t.Errorf("got %v, want a *WriteError that names slot %d alone", err, slot)
					}
				})
			}
		}
	}
}

func TestAdoptTakesForeignKeysOver(t *testing.T) {
	for what, f := range foreigners {
		for _, where := range []string{"home", "elsewhere"} {
			t.Run(strings.ReplaceAll(what+" "+where, " ", "-"), func(t *testing.T) {
				b := memory.New()
				s := newFew(t, b, Options{Adopt: true})
				slot := s.home
				if where == "elsewhere" {
					slot = s.otherSlot(7)
				}
				f.put(t, b, s.replicaKey(slot))
				publish(t, s, "a")
				wantEverywhere(t, s, "a")
			})
		}
	}
}

// A replica that carries our mark is ours whatever became of it.
func TestOwnReplicaOfTheWrongTypeIsWrittenAgain(t *testing.T) {
	b := memory.New()
	s := newFew(t, b, Options{})
	publish(t, s, "a")
	for _, slot := range []uint16{s.home, s.otherSlot(3)} {
		do(t, b, "SET", s.replicaKey(slot), "x")
	}
	if _, err := s.Len(t.Context(), s.replicaKey(s.home)); err == nil {
		t.Error("a read of a replica that is a string succeeds")
	}
	publish(t, s, "b")
	wantEverywhere(t, s, "b")
}

func TestForeignKeyErrorSaysWhatToDo(t *testing.T) {
	err := slotError("publish", slotmap.KeyForSlot("subs", 42), &ForeignKeyError{Key: "subs:{x}"})
	for _, want := range []string{`"subs:{x}"`, "Options.Adopt", "another name", "replset: publish: slot 42: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
