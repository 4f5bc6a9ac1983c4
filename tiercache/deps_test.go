package tiercache_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDeps holds the package to a list: an importer gets no Redis client, no
// generator of tests, and not package testing.
func TestDeps(t *testing.T) {
	allowed := []string{
		"github.com/shardkit/shardkit/tiercache",
		"github.com/shardkit/shardkit/ring",
		"github.com/maypok86/otter/v2",
		"github.com/sony/gobreaker/v2",
		"golang.org/x/sync/singleflight",
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".", "./memory").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		known := false
		for _, prefix := range allowed {
			known = known || path == prefix || strings.HasPrefix(path, prefix+"/")
		}
		if !known {
			t.Errorf("%s is reached, and is not on the list", path)
		}
	}
	out, err = exec.Command("go", "list", "-deps", ".", "./memory").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		if path == "testing" {
			t.Error("package testing is reached")
		}
	}
}
