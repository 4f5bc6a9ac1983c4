package ring

import (
	"os"
	"strings"
	"testing"
)

// The code of the README is the body of an example, which the compiler and go test check.
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
		t.Fatal("README.md holds no Go code")
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		body := "\t" + strings.ReplaceAll(strings.TrimSuffix(code, "\n"), "\n", "\n\t")
		body = strings.ReplaceAll(body, "\n\t\n", "\n\n")
		if !strings.Contains(string(examples), body) {
			t.Errorf("not an example of example_test.go:\n%s", code)
		}
	}
}
