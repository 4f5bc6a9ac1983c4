package main

import "math/rand/v2"

const speedKeys = 512 // few enough for the first- and second-level cache

type keySet struct {
	name     string
	min, max int  // bytes
	tagged   bool // "sub:{...}": all but six bytes are tag
	asserted bool
}

var keySets = []keySet{
	{"8", 8, 8, false, false},
	{"16", 16, 16, false, true},
	{"32", 32, 32, false, true},
	{"64", 64, 64, false, true},
	{"256", 256, 256, false, false},
	{"8-40", 8, 40, false, false},
	{"16-64", 16, 64, false, true},
	{"8", 8, 8, true, false},
	{"16", 16, 16, true, false},
	{"32", 32, 32, true, true},
	{"64", 64, 64, true, true},
	{"256", 256, 256, true, false},
	{"8-40", 8, 40, true, false},
	{"16-64", 16, 64, true, true},
}

func (s keySet) keys() []string {
	r := rand.New(rand.NewPCG(uint64(s.min), uint64(s.max)))
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789:"
	keys := make([]string, speedKeys)
	for i := range keys {
		b := make([]byte, s.min+r.IntN(s.max-s.min+1))
		for j := range b {
			b[j] = letters[r.IntN(len(letters))]
		}
		if s.tagged {
			copy(b, "sub:{")
			b[len(b)-1] = '}'
		}
		keys[i] = string(b)
	}
	return keys
}
