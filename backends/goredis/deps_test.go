package goredis

import (
	"os/exec"
	"strings"
	"testing"
)

// The package satisfies replset.Backend by its shape: who uses another part of
// shardkit with go-redis does not get this one's core, and a third client's
// adapter needs nothing of ours either.
func TestDependencies(t *testing.T) {
	const module = "github.com/shardkit/shardkit/"
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list -deps: %v\n%s", err, out)
	}
	reached := 0
	for line := range strings.Lines(string(out)) {
		path, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		reached++
		if strings.HasPrefix(path, module) && path != module+"backends/goredis" {
			t.Errorf("reaches %s", path)
		}
		if path == "testing" {
			t.Errorf("reaches testing, which puts test flags into every program")
		}
	}
	if reached < 10 {
		t.Errorf("go list -deps named %d packages:\n%s", reached, out)
	}
	out, err = exec.Command("go", "list", "-f", "{{join .Imports \"\\n\"}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSpace(path)
		if host, _, _ := strings.Cut(path, "/"); strings.Contains(host, ".") && !strings.HasPrefix(path+"/", "github.com/redis/go-redis/v9/") {
			t.Errorf("imports %s: only the standard library and go-redis", path)
		}
	}
}
