package memory

import "strings"

// overhead is about what a key takes beside its own bytes and its value's.
const overhead = 100

// bound keeps what is held below a limit, as maxmemory does with the policy
// volatile-random: in the place of what is written, values that have a life go.
//
// It knows the size when it last looked, and that a command adds no more than it
// is long. So it looks again after a sixteenth of the limit at the soonest, and
// need not be told of each change.
type bound struct {
	limit int64 // 0: none
	most  int64 // that may be held now
}

// note takes note of a command that has run. s.mu is held.
func (b *bound) note(s *Shard, cmd []string) {
	if b.limit == 0 || len(cmd) == 0 || !adds(cmd) {
		return
	}
	b.most += overhead
	for _, word := range cmd {
		b.most += int64(len(word))
	}
	if b.most > b.limit {
		b.look(s)
	}
}

// adds reports whether a command may.
func adds(cmd []string) bool {
	switch strings.ToUpper(cmd[0]) {
	case "EVAL", "EVALSHA", "INCR", "SET":
		return true
	}
	return false
}

func (b *bound) look(s *Shard) {
	b.most = 0
	for key := range s.keys {
		if v, held := s.get(key); held {
			b.most += size(key, v)
		}
	}
	room := b.limit - b.limit/16
	for key, v := range s.keys { // in no order
		if b.most <= room {
			break
		}
		if !v.expires.IsZero() {
			delete(s.keys, key)
			b.most -= size(key, v)
		}
	}
}

func size(key string, v value) int64 { return int64(len(key) + len(v.text) + overhead) }
