package bench

import (
	"os"
	"strings"
	"testing"
)

// The code in the README is code that runs.
func TestReadmeCodeIsAnExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the README has no Go code")
	}
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		if !strings.Contains(string(examples), code) {
			t.Errorf("not in example_test.go:\n%s", code)
		}
	}
}
