package slotmap

import (
	"os/exec"
	"strings"
	"testing"
)

// Everything that computes a slot imports this package, so what it reaches, everyone carries.
func TestDependencies(t *testing.T) {
	never := map[string]string{
		"testing":         "puts test flags into every program",
		"net":             "slot arithmetic talks to nobody",
		"os":              "slot arithmetic reads nothing",
		"time":            "a slot does not depend on when it is computed",
		"fmt":             "brings reflect, to build strings that need no more than strconv",
		"reflect":         "keeps the linker from dropping methods",
		"embed":           "the table is a constant; embed would bring io/fs and time",
		"encoding/binary": "brings reflect; word.go loads words without it",
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list -deps: %v\n%s", err, out)
	}
	reached := 0
	for line := range strings.Lines(string(out)) {
		path, standard, _ := strings.Cut(strings.TrimSpace(line), " ")
		reached++
		if standard != "true" && path != "github.com/shardkit/shardkit/slotmap" {
			t.Errorf("reaches %s, which is not in the standard library: this module requires nothing", path)
		}
		if why, bad := never[path]; bad {
			t.Errorf("reaches %s: %s", path, why)
		}
	}
	if reached < 2 {
		t.Errorf("go list -deps named %d packages:\n%s", reached, out)
	}
}
