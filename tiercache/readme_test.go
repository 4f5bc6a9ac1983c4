package tiercache_test

import (
	"os"
	"strings"
	"testing"
)

// The code of the README stands in an example, which the compiler and go test
// check.
func TestReadmeCodeIsInAnExample(t *testing.T) {
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
		t.Fatal("README.md holds no Go code")
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "\n```")
		if !strings.Contains(string(examples), code) {
			t.Errorf("not in example_test.go:\n%s", code)
		}
	}
}
