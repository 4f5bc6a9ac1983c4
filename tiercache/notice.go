package tiercache

import (
	"strconv"
	"strings"
)

// notice is what a write tells its shard's subscribers.
type notice struct {
	epoch, sequence int64
	keys            string // "LENGTH:KEY" for each
}

func parseNotice(s string) (n notice, ok bool) {
	n.epoch, s, ok = cutInteger(s, true)
	n.sequence, s, ok = cutInteger(s, ok)
	n.keys = s
	return n, ok
}

// next cuts off the first key. ok is false at the end, and where the notice is
// broken, which then has a rest.
func (n *notice) next() (key string, ok bool) {
	digits, rest, found := strings.Cut(n.keys, ":")
	size, err := strconv.Atoi(digits)
	if !found || err != nil || size < 0 || size > len(rest) {
		return "", false
	}
	n.keys = rest[size:]
	return rest[:size], true
}
