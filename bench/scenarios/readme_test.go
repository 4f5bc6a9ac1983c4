package scenarios

import (
	"os"
	"strings"
	"testing"
)

func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	for _, b := range blocks {
		if code, _, _ := strings.Cut(b, "```"); !strings.Contains(string(examples), code) {
			t.Errorf("not in example_test.go:\n%s", code)
		}
	}
	if len(blocks) == 0 {
		t.Error("the README has no Go code")
	}
	for _, s := range All() {
		if !strings.Contains(string(readme), "| `"+s.Name+"` |") {
			t.Errorf("the README's table does not have %s", s.Name)
		}
	}
}
