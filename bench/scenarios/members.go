package scenarios

import (
	"fmt"
	"strconv"
)

// A content is what a replicated set holds in a run: of one encoding and size, in two versions that take turns, so that
// every publish changes something.
type content struct {
	size     int
	integers bool
}

func (c content) String() string {
	if c.integers {
		return fmt.Sprintf("%d-integers", c.size)
	}
	return fmt.Sprintf("%d-strings", c.size)
}

// words describes the members for a reader.
func (c content) words() string {
	if c.integers {
		return fmt.Sprintf("%d integers of 7 digits", c.size)
	}
	return fmt.Sprintf("%d strings of 13 bytes", c.size)
}

// version returns the members of version 0 or 1. One member in ten differs, as in a set that is published anew.
func (c content) version(v int) []string {
	members := make([]string, c.size)
	for i := range members {
		n := i
		if i%10 == 9 {
			n += v * c.size
		}
		members[i] = c.member(n)
	}
	return members
}

// member returns the n-th member there can be. Integers fit 32 bits, which is what servers pack them into.
func (c content) member(n int) string {
	if c.integers {
		return strconv.Itoa(1_000_000 + 37*n)
	}
	return fmt.Sprintf("member-%06d", n)
}
