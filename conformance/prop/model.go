package prop

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/shardkit/shardkit/replset"
)

// members is a set of some of the alphabet, one bit each: a value, so that a copy of a state shares nothing with it.
type members uint16

// The alphabet of members. A letter is one member or many: each way in which Redis stores a set, and what is often got wrong.
var alphabet = func() [][]string {
	letters := [][]string{
		{""}, {"a"}, {"\x00\xff\r\n"}, {"42"}, {"-7"}, {"{42}"}, {"042"}, {"9223372036854775808"}, {strings.Repeat("long", 30)},
	}
	var strings, integers []string
	for i := range 150 {
		strings = append(strings, fmt.Sprint("member-", i))
	}
	for i := range 600 {
		integers = append(integers, fmt.Sprint(1000+i))
	}
	return append(letters, strings, integers, []string{"alien"})
}()

const (
	singles = 9              // letters that are one member, first in the alphabet
	letters = 11             // that writes choose from
	alien   = 1 << 11        // what nobody writes
	sharded = 0b10_0000_1011 // what the sharded key beside a replica holds, and one member more
)

func (m members) list() []string {
	var list []string
	for letter, some := range alphabet {
		if m&(1<<letter) != 0 {
			list = append(list, some...)
		}
	}
	return list
}

func (m members) size() (n int) {
	for letter, some := range alphabet {
		if m&(1<<letter) != 0 {
			n += len(some)
		}
	}
	return n
}

func (m members) String() string {
	if m == 0 {
		return "{}"
	}
	var names []string
	for letter := range alphabet {
		if m&(1<<letter) == 0 {
			continue
		}
		if some := alphabet[letter]; len(some) > 1 {
			names = append(names, fmt.Sprintf("%s...%s", some[0], some[len(some)-1]))
		} else {
			names = append(names, fmt.Sprintf("%.12q", some[0]))
		}
	}
	return "{" + strings.Join(names, " ") + "}"
}

// lettersOf is members, if list is no more and no less.
func lettersOf(list []string) (m members, ok bool) {
	has := make(map[string]bool, len(list))
	for _, s := range list {
		has[s] = true
	}
	for letter, some := range alphabet {
		if has[some[0]] {
			m |= 1 << letter
		}
	}
	for _, s := range m.list() {
		if !has[s] {
			return m, false
		}
	}
	return m, m.size() == len(list)
}

// places are the slots that hold a replica, the home slot first.
const places = 8

// model is what a replicated set should be: a plain set. It has no replicas: what these may hold follows from what they held a
// step ago, since a damaged one is repaired sooner or later, by way of writing.
type model struct {
	published bool // else it was never published, or cleared
	known     bool // it was published or cleared once
	set       members
	before    *model // what it was a step ago
}

func (m model) String() string { return "a new set" }

func (m model) publish(s members) model { return model{published: true, known: true, set: s} }

func (m model) apply(add, remove members) model {
	if m.published {
		m.set = m.set&^remove | add
	}
	return m
}

func (m model) clear() model { return model{known: true} }

// drift is what Verify should find of a replica; "" for nothing.
func (m model) drift(replica members) replset.DriftKind {
	switch {
	case replica == m.set:
		return ""
	case replica == 0:
		return replset.Missing
	case m.set&^replica != 0:
		return replset.Content
	}
	return replset.Extra
}

// read is why a read beside a replica must fail. What the library tells a damaged one by is its size.
func (m model) read(replica members) error {
	switch {
	case !m.published, replica == 0 && m.set != 0:
		return replset.ErrReplicaMissing
	case replica.size() != m.set.size():
		return replset.ErrReplicaDrifted
	}
	return nil
}

// single is the n-th letter of the set that is one member, or 0.
func (m members) single(n int) members {
	ones := m & (1<<singles - 1)
	if ones == 0 {
		return 0
	}
	for range n % bits.OnesCount16(uint16(ones)) {
		ones &= ones - 1
	}
	return ones & -ones
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}
