//go:build race

package tiercache_test

const raceEnabled = true
