//go:build race

package caches

const raceDetector = true
