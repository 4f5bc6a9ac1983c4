package slotmap

import (
	"strconv"
	"unicode/utf8"
)

// quoteLimit keeps a log line readable when a key is a document.
const quoteLimit = 64

// quote returns s in double quotes, escaped so that it can neither break a line nor pass for other text; what exceeds
// quoteLimit bytes is replaced by its length.
func quote(s string) string {
	if len(s) <= quoteLimit {
		return strconv.Quote(s)
	}
	cut := quoteLimit
	for cut > quoteLimit-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "... (" + strconv.Itoa(len(s)) + " bytes)"
}
