package replset

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shardkit/shardkit/slotmap"
)

var (
	// ErrReplicaMissing means that the slot holds no replica of the set: it was
	// never published there, was cleared, or was lost (an evicted key, a master
	// that came back empty). It is never an empty set: a published empty set
	// answers without error. Publish the set, or Reconcile that slot.
	ErrReplicaMissing = errors.New("replica missing")

	// ErrReplicaDrifted means that a replica's size is not the one that was
	// published: something else wrote to it. Publish again, or Reconcile.
	ErrReplicaDrifted = errors.New("replica drifted")

	// ErrNoOwner means that no master serves the slot.
	ErrNoOwner = errors.New("slot has no master")

	// ErrNotCluster means that the server is not in cluster mode.
	ErrNotCluster = errors.New("the server is not in cluster mode: replset needs Redis Cluster (cluster-enabled yes)")

	// ErrTooOld means that the server lacks a command that the call needs.
	ErrTooOld = errors.New("the server is too old")

	// ErrSlotMoving means that the slot was on its way to another master for longer
	// than the read's patience. Try again; a reshard of one slot takes milliseconds
	// to seconds.
	ErrSlotMoving = errors.New("the slot is moving")

	// ErrUnderReplicated means that a write reached the master, and fewer server
	// replicas than Options.WaitReplicas asks for.
	ErrUnderReplicated = errors.New("written, but acknowledged by too few server replicas")

	// ErrNoAuthority means that no replica's content agrees with its stamp, so
	// nothing tells what the set should hold. Give Reconcile the members, or
	// Publish.
	ErrNoAuthority = errors.New("no replica can prove what the set holds")

	// ErrContended means that other writers kept taking the set's next number
	// until the call's patience ran out. Try again, or write less often.
	ErrContended = errors.New("other writers kept getting in first")
)

// SlotError is the failure of one slot.
type SlotError struct {
	Slot uint16
	Op   string // "publish", "intersect", ...
	Err  error
}

func (e *SlotError) Error() string {
	return fmt.Sprintf("replset: %s: slot %d: %s", e.Op, e.Slot, strings.TrimPrefix(e.Err.Error(), "replset: "))
}

func (e *SlotError) Unwrap() error { return e.Err }

// WriteError says which slots a write did not reach. Every other slot holds the
// write, or a newer one that replaced it.
type WriteError struct {
	Op      string
	Number  int64        // the write's number in the set's order
	Written int          // slots that hold it
	Failed  []*SlotError // in slot order
}

func (e *WriteError) Error() string {
	first := ""
	if len(e.Failed) > 0 {
		first = "; " + strings.TrimPrefix(e.Failed[0].Error(), "replset: "+e.Op+": ")
	}
	return fmt.Sprintf("replset: %s reached %d of %d slots%s", e.Op, e.Written, e.Written+len(e.Failed), first)
}

func (e *WriteError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f
	}
	return errs
}

// ForeignKeyError means that a key stands where a replica, or the stamp beside
// it, belongs, and that this package did not write it. It was left alone.
// Choose another name for the set; Options.Adopt takes the place over.
type ForeignKeyError struct {
	Key string
}

func (e *ForeignKeyError) Error() string {
	return fmt.Sprintf("replset: key %q was not written by replset: choose another name, or set Options.Adopt to overwrite it", e.Key)
}

// code is the first word of a server's error, such as WRONGTYPE, or "" for an
// error that no server said.
func code(err error) string {
	word, _, ok := strings.Cut(err.Error(), " ")
	if !ok || word == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return word
}

// transient reports whether the same command may succeed a little later: the
// slot is moving, the node is not ready, or no server answered. Whether the
// caller's own context has ended is for the caller to ask: a client's time-out
// looks the same (net's satisfies errors.Is(err, context.DeadlineExceeded)).
func transient(err error) bool {
	switch code(err) {
	case "", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "MOVED", "ASK", "BUSY", "NOREPLICAS", "UNKILLABLE":
		return !permanent(err)
	}
	return false
}

// permanent reports errors of our own, which no repetition cures.
func permanent(err error) bool {
	var drift driftError
	return isForeign(err) || errors.As(err, &drift) || errors.Is(err, ErrReplicaMissing) || errors.Is(err, ErrReplicaDrifted) ||
		errors.Is(err, ErrNotCluster) || errors.Is(err, ErrTooOld) || errors.Is(err, errUnexpected) || errors.Is(err, errMovedOn)
}

// scriptsRefused reports whether the server will not run scripts for this user.
func scriptsRefused(err error) bool {
	text := err.Error()
	return code(err) == "NOPERM" && strings.Contains(text, "eval") ||
		strings.HasPrefix(text, "ERR unknown command") && strings.Contains(strings.ToLower(text), "eval")
}

// explain replaces a server's text by what it means here, keeping the original
// underneath.
func explain(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "cluster support disabled"):
		return join(ErrNotCluster, err)
	case code(err) == "CLUSTERDOWN" && strings.Contains(text, "not served"):
		return join(ErrNoOwner, err)
	case strings.HasPrefix(text, "ERR unknown command"):
		return join(ErrTooOld, err)
	}
	return err
}

// join wraps both the sentinel and the client's own error.
func join(sentinel, err error) error {
	return fmt.Errorf("%w: %w", sentinel, err)
}

// slotError names the slot of key in err; nil stays nil.
func slotError(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &SlotError{Slot: slotmap.Slot(key), Op: op, Err: explain(err)}
}
