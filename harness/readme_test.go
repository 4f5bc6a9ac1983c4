package harness_test

import (
	"os"
	"strings"
	"testing"
)

// The code in the README is the code of the examples, which the compiler has seen.
func TestReadmeShowsTheExamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	examples, err := os.ReadFile("example_test.go")
	must(t, err)
	blocks := strings.Split(string(readme), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the README has no code")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(dedent(string(examples)), dedent(block)) {
			t.Errorf("this is in no example:\n%s", block)
		}
	}
}

func dedent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String()
}
