package replset

import (
	"os/exec"
	"strings"
	"testing"
)

// Everyone who keeps a replicated set carries what this package reaches, and
// brings the client of his choice himself.
func TestDependencies(t *testing.T) {
	const module = "github.com/shardkit/shardkit/"
	never := map[string]string{
		"testing":                      "puts test flags into every program",
		"net":                          "the backend talks to servers",
		"os/exec":                      "starts nothing",
		module + "replset/replsettest": "is for tests, and imports testing",
	}
	for _, pkg := range []string{".", "./memory"} {
		out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("go list -deps %s: %v\n%s", pkg, err, out)
		}
		reached := 0
		for line := range strings.Lines(string(out)) {
			path, standard, _ := strings.Cut(strings.TrimSpace(line), " ")
			reached++
			if standard != "true" && !strings.HasPrefix(path, module) {
				t.Errorf("%s reaches %s, which is neither in the standard library nor in shardkit", pkg, path)
			}
			if why, bad := never[path]; bad {
				t.Errorf("%s reaches %s: it %s", pkg, path, why)
			}
			if pkg == "." && path == module+"replset/memory" {
				t.Errorf("%s reaches %s: it is for tests", pkg, path)
			}
		}
		if reached < 10 {
			t.Errorf("go list -deps %s named %d packages:\n%s", pkg, reached, out)
		}
	}
}
