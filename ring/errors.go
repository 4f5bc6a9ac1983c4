package ring

import (
	"errors"
	"fmt"
)

// What a caller may branch on, with errors.Is. All but the first two come inside a [*NodeError].
var (
	ErrNoNodes   = errors.New("ring: no nodes")
	ErrAllDown   = errors.New("ring: every node is down")
	ErrDuplicate = errors.New("named twice")
	ErrCollision = errors.New("hashed like another node, and would own nothing: give it another name")
	ErrUnknown   = errors.New("not in the ring")
	ErrWeight    = errors.New("weight out of range")
)

// NodeError says which node was refused, and why.
type NodeError struct {
	Name string
	Err  error
}

func (e *NodeError) Error() string { return fmt.Sprintf("ring: node %q: %v", e.Name, e.Err) }
func (e *NodeError) Unwrap() error { return e.Err }

func weightError(w float64) error {
	return fmt.Errorf("%w: %v, want %v to %v", ErrWeight, w, minWeight, maxWeight)
}

func shareError(w, share float64, buckets int) error {
	return fmt.Errorf("%w: %v would own %.3g of %d buckets, want at least %d: more buckets or fewer nodes would do", ErrWeight, w, share, buckets, minShare)
}

func errorf(format string, args ...any) error {
	return fmt.Errorf("ring: "+format, args...)
}
