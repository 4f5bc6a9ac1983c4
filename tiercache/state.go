package tiercache

import (
	"encoding/binary"
	"strings"
)

// state is what a shard knows about itself for one namespace: the string that
// internal/script/lua/state.lua describes.
type state struct {
	epoch, sequence int64
	verified        int64 // us by the shard's clock
	list            int64 // its number
}

const (
	stateMagic = "tcs\x02"
	hotSize    = 16 // of what is there for writes alone
	notesSize  = 16 // of what is there for other shards
)

func parseState(s string) (st state, ok bool) {
	s, ok = strings.CutPrefix(s, stateMagic)
	for _, field := range []*int64{&st.epoch, &st.sequence, &st.verified} {
		*field, s, ok = cutInteger(s, ok)
	}
	if !ok || len(s) < hotSize {
		return st, false
	}
	st.list, s, ok = cutInteger(s[hotSize:], true)
	return st, ok && len(s) > notesSize
}

// cutInteger reads one of 8 bytes, as scripts write it: big-endian and below
// 2^53, which is what Lua counts exactly.
func cutInteger(s string, ok bool) (n int64, rest string, _ bool) {
	if !ok || len(s) < 8 {
		return 0, s, false
	}
	u := binary.BigEndian.Uint64([]byte(s[:8]))
	return int64(u), s[8:], u < 1<<53
}
