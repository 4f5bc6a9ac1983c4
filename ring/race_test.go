//go:build race

package ring

// The race detector makes everything some twenty times slower: tests that repeat something, repeat it less, and none measures time.
const raceEnabled = true
