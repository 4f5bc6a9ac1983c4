package slotmap

import "strings"

// HashTag returns the part of key that decides its slot: what stands between the first '{' and the first '}' after it or,
// when there is no such pair or nothing inside it, the whole key. Only the first '{' counts: "{}{a}" is hashed whole. The
// result shares the memory of key.
//
// Source: the Redis Cluster specification, "Hash tags".
func HashTag(key string) string {
	from, to := tagBounds(key)
	return key[from:to]
}

// HashTagBytes is [HashTag] for a key held as bytes; the result is a part of key, not a copy.
func HashTagBytes(key []byte) []byte {
	from, to := tagBounds(view(key))
	return key[from:to:to]
}

func tagBounds(key string) (from, to int) {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if n := strings.IndexByte(key[open+1:], '}'); n > 0 {
			return open + 1, open + 1 + n
		}
	}
	return 0, len(key)
}
