//go:build !race

package caches

const raceDetector = false
