package bench

import (
	"os/exec"
	"strings"
	"testing"
)

// Importing bench must stay cheap: scenarios bring their own clients.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		first, _, _ := strings.Cut(pkg, "/")
		own := pkg == "github.com/shardkit/shardkit/bench" || pkg == "github.com/shardkit/shardkit/bench/internal/program" || pkg == "github.com/HdrHistogram/hdrhistogram-go"
		if pkg == "testing" || strings.Contains(first, ".") && !own {
			t.Errorf("bench reaches %s", pkg)
		}
	}
}
