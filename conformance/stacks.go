package conformance

import (
	"runtime"
	"strings"
)

// stacksOf returns the stacks of the goroutines that a case's run began, as far as they tell of it.
func stacksOf(Case) string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var ours []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "conformance.(*suite).run.func") || strings.Contains(g, "created by github.com/shardkit/shardkit/conformance.") {
			ours = append(ours, g)
		}
	}
	text := strings.Join(ours, "\n\n")
	const most = 8000
	if len(text) > most {
		text = text[:most] + "\n..."
	}
	return text
}
