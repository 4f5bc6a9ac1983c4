//go:build race

package ring

// The race detector makes everything some twenty times slower: tests that repeat, repeat less, and none measures time.
const raceEnabled = true
