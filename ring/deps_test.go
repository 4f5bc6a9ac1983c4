package ring

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Whoever places a key imports this package, so what it reaches, everyone carries.
func TestDependencies(t *testing.T) {
	never := map[string]string{
		"testing":      "puts test flags into every program",
		"net":          "a ring talks to nobody",
		"net/http":     "a ring talks to nobody",
		"math/rand":    "a table is the same in every process",
		"math/rand/v2": "a table is the same in every process",
		"hash/maphash": "differs from process to process",
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list -deps: %v\n%s", err, out)
	}
	reached := 0
	for line := range strings.Lines(string(out)) {
		path, standard, _ := strings.Cut(strings.TrimSpace(line), " ")
		reached++
		if standard != "true" && path != "github.com/shardkit/shardkit/ring" {
			t.Errorf("reaches %s, which is not in the standard library: this module requires nothing", path)
		}
		if why, bad := never[path]; bad {
			t.Errorf("reaches %s: %s", path, why)
		}
	}
	if reached < 2 {
		t.Errorf("go list -deps named %d packages:\n%s", reached, out)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mod), "require") {
		t.Errorf("go.mod requires a module:\n%s", mod)
	}
}

// Package math's functions may differ in the last bit between architectures, where they are assembly: only those that are exact by
// definition may decide where a key is.
func TestExactMathAlone(t *testing.T) {
	exact := []string{
		"math.Float64bits", "math.Float64frombits", "math.MaxUint64", "math.MaxUint32", "math.Floor", "math.Ceil", "math.IsNaN", "math.IsInf", "math.Inf",
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for number, line := range strings.Split(string(text), "\n") {
			line, _, _ = strings.Cut(line, "//")
			for _, ok := range exact {
				line = strings.ReplaceAll(line, ok, "")
			}
			if strings.Contains(line, "math.") {
				t.Errorf("%s:%d: uses more of package math than is exact: %s", f.Name(), number+1, strings.TrimSpace(line))
			}
		}
	}
}
