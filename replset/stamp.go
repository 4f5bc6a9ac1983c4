package replset

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// A stamp stands beside each replica, in the same slot. It proves that the
// replica was written by this package, says by which write, and tells an empty
// set (no key at all, in Redis) from a lost one.
//
//	sk1 NUMBER COUNT DIGEST
//
// NUMBER is the write's place in the set's order, COUNT the members after it
// (cleared: -1), DIGEST the sum of the members' hashes. The text stays below 44
// bytes, up to which Redis keeps a string in one allocation.
type stamp struct {
	number int64
	count  int
	digest uint64
}

const (
	stampMark = "sk1"
	cleared   = -1
)

func (s stamp) String() string {
	return fmt.Sprintf("%s %d %d %012x", stampMark, s.number, s.count, s.digest)
}

// parseStamp reads a stamp; ok is false for a value this package did not write.
func parseStamp(v string) (s stamp, ok bool) {
	mark, rest, _ := strings.Cut(v, " ")
	number, rest, _ := strings.Cut(rest, " ")
	count, digest, _ := strings.Cut(rest, " ")
	var errs [3]error
	s.number, errs[0] = strconv.ParseInt(number, 10, 64)
	s.count, errs[1] = strconv.Atoi(count)
	s.digest, errs[2] = strconv.ParseUint(digest, 16, 64)
	return s, mark == stampMark && errs == [3]error{}
}

// digestMask keeps digests at 48 bits: sums of two stay exact in the doubles
// that Lua has for numbers.
const digestMask = 1<<48 - 1

// hashOf is the first six bytes of a member's SHA-1, which scripts have at hand
// as redis.sha1hex.
func hashOf(member string) uint64 {
	sum := sha1.Sum([]byte(member))
	return binary.BigEndian.Uint64(sum[:8]) >> 16
}

// digestOf is the sum of the hashes: independent of order, and moved by one
// addition when a member comes or goes. It finds drift, not an attacker.
func digestOf(members []string) uint64 {
	var d uint64
	for _, m := range members {
		d += hashOf(m)
	}
	return d & digestMask
}
