//go:build race

package prop

const raceDetector = true
