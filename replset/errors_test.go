package replset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestWriteError(t *testing.T) {
	e := &WriteError{Op: "add", Number: 7, Written: 16381, Failed: []*SlotError{
		{3, "add", context.DeadlineExceeded},
		{9, "add", &ForeignKeyError{Key: "active:{1}"}},
		{16383, "add", fmt.Errorf("%w: %w", ErrNoOwner, serverError("CLUSTERDOWN Hash slot not served"))},
	}}
	if got, want := e.Error(), "replset: add reached 16381 of 16384 slots; slot 3: context deadline exceeded"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wrapped := fmt.Errorf("while publishing: %w", e)
	for _, target := range []error{context.DeadlineExceeded, ErrNoOwner, serverError("CLUSTERDOWN Hash slot not served")} {
		if !errors.Is(wrapped, target) {
			t.Errorf("errors.Is(%v, %v) is false", wrapped, target)
		}
	}
	if errors.Is(wrapped, context.Canceled) || errors.Is(wrapped, ErrReplicaMissing) {
		t.Error("the error passes for one that it does not hold")
	}
	var slot *SlotError
	var foreign *ForeignKeyError
	if !errors.As(wrapped, &slot) || slot.Slot != 3 || !errors.As(wrapped, &foreign) || foreign.Key != "active:{1}" {
		t.Errorf("errors.As found %v and %v", slot, foreign)
	}
	for _, f := range e.Failed {
		if !strings.HasPrefix(f.Error(), fmt.Sprintf("replset: add: slot %d: ", f.Slot)) {
			t.Errorf("the message is %q", f.Error())
		}
	}
}

func TestCode(t *testing.T) {
	for text, want := range map[string]string{
		"WRONGTYPE Operation against a key": "WRONGTYPE",
		"ERR x":                             "ERR",
		"MOVED 1 127.0.0.1:7000":            "MOVED",
		"EOF":                               "",
		"":                                  "",
		" ERR":                              "",
		"read tcp: timeout":                 "",
		"Err x":                             "",
		"goredis: gave up":                  "",
	} {
		if got := code(errors.New(text)); got != want {
			t.Errorf("code(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTransient(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errors.New("EOF"), true},
		{errors.New("dial tcp: connection refused"), true},
		{fmt.Errorf("dial tcp: %w", context.DeadlineExceeded), true}, // a client's own time-out says this too
		{serverError("TRYAGAIN x"), true},
		{serverError("CLUSTERDOWN x"), true},
		{serverError("LOADING x"), true},
		{serverError("READONLY x"), true},
		{serverError("BUSY x"), true},
		{serverError("NOREPLICAS x"), true},
		{fmt.Errorf("%w: x", ErrContended), true},
		{serverError("CROSSSLOT x"), false},
		{serverError("WRONGTYPE x"), false},
		{serverError("NOPERM x"), false},
		{serverError("ERR x"), false},
		{serverError("OOM x"), false},
		{serverError("NOSCRIPT x"), false},
		{&ForeignKeyError{Key: "k"}, false},
		{fmt.Errorf("%w: x", ErrReplicaMissing), false},
		{fmt.Errorf("%w: x", ErrReplicaDrifted), false},
		{unexpected(1), false},
		{join(ErrNotCluster, serverError("ERR cluster support disabled")), false},
	} {
		if got := transient(c.err); got != c.want {
			t.Errorf("transient(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}

// Each server words its refusal in its own way.
func TestScriptsRefused(t *testing.T) {
	for text, want := range map[string]bool{
		"NOPERM this user has no permissions to run the 'evalsha' command":                true,  // Redis 7.0
		"NOPERM User alice has no permissions to run the 'evalsha' command":               true,  // Redis 7.2, Valkey 8
		"ERR unknown command 'EVALSHA', with args beginning with: 'x' ":                   true,  // renamed away
		"ERR unknown command `eval`, with args beginning with: ":                          true,  // Redis 5
		"NOPERM this user has no permissions to run the 'get' command":                    false, // another matter
		"ERR unknown command 'SINTERCARD', with args beginning with: '2' ":                false,
		"NOSCRIPT No matching script. Please use EVAL.":                                   false,
		"NOPERM No permissions to access a key":                                           false,
		"ERR user_script:1: Script attempted to access a non local key in a cluster node": false,
	} {
		if got := scriptsRefused(serverError(text)); got != want {
			t.Errorf("scriptsRefused(%q) = %v, want %v", text, got, want)
		}
	}
}
