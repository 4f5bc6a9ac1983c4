package rueidisbackend

import (
	"os/exec"
	"strings"
	"testing"
)

// Whoever imports the adapter gets rueidis, and nothing else with it: no core
// package, since the interface is met by shape, and no other client.
func TestDependencies(t *testing.T) {
	allowed := []string{
		"github.com/shardkit/shardkit/backends/rueidis",
		"github.com/redis/rueidis", "github.com/redis/rueidis/internal/",
		"golang.org/x/sys/cpu", // rueidis
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list -deps: %v\n%s", err, out)
	}
	reached := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		path, standard, _ := strings.Cut(strings.TrimSpace(line), " ")
		reached[path] = true
		if standard == "true" && path != "testing" {
			continue
		}
		ok := false
		for _, a := range allowed {
			ok = ok || path == a || strings.HasSuffix(a, "/") && strings.HasPrefix(path, a)
		}
		if !ok {
			t.Errorf("reaches %s", path)
		}
	}
	if !reached["github.com/redis/rueidis"] {
		t.Errorf("go list -deps does not name rueidis:\n%s", out)
	}
}
