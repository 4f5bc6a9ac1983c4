//go:build !race

package prop

const raceDetector = false
