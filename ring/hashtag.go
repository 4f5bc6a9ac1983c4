package ring

import "strings"

// hashTag returns the part of key that a Redis Cluster hashes: what lies between the first { and the first } after it, or
// the whole key where there is no such part or it is empty.
func hashTag(key string) string {
	// Most keys have no tag, and are short: two words tell in half of the time that IndexByte takes.
	if n := len(key); n >= 8 && n <= 16 && !hasOpen(load64(key)) && !hasOpen(load64(key[n-8:])) {
		return key
	}
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	if n := strings.IndexByte(key[open+1:], '}'); n > 0 {
		return key[open+1 : open+1+n]
	}
	return key
}

// hasOpen tells whether a byte of word is {: xor makes it zero, and only a zero borrows into its top bit without having it
// set, or follows one that did.
func hasOpen(word uint64) bool {
	const each = 0x0101010101010101
	word ^= '{' * each
	return (word-each)&^word&(0x80*each) != 0
}
