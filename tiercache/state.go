package tiercache

import "strings"

// state is what a shard knows about itself for one namespace: the string that
// internal/script/lua/state.lua describes.
type state struct {
	epoch, sequence int64
	verified        int64 // us by the shard's clock
}

const stateMagic = "tcs1 "

func parseState(s string) (st state, ok bool) {
	rest, ok := strings.CutPrefix(s, stateMagic)
	for _, field := range []*int64{&st.epoch, &st.sequence, &st.verified} {
		*field, rest, ok = cutInteger(rest, ok)
	}
	return st, ok && rest != ""
}

// cutInteger reads digits up to a space, and what follows.
func cutInteger(s string, ok bool) (n int64, rest string, _ bool) {
	for i := 0; ok && i < len(s) && i < 18; i++ {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			n = 10*n + int64(c-'0')
		case c == ' ' && i > 0:
			return n, s[i+1:], true
		default:
			return 0, s, false
		}
	}
	return 0, s, false
}
