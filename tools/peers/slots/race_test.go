//go:build race

package slots

const raceDetector = true
