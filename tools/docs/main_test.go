package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each kind of mistake is found, and what is right is not taken for one.
func TestCheck(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a/a.go", "package a\n\n// New is\n//\n//\tonly.InAComment()\n//\nfunc New() {\n\tif true {\n\t\tx := 1\n\n\t\t_ = x // kept\n\t}\n}\n")
	write("right.md", "# Right here, `code` & more\n\n"+
		"[file](a/a.go) [folder](a) [anchor](#right-here-code--more) [other](b.md#it-is) https://example.com/x. `[no](link)` `a/a.go`\n\n"+
		"```go\nx := 1\n_ = x // kept\n```\n\n```sh\n[a](b)\n```\n")
	write("b.md", "## It is\n## It is\n[second](#it-is-1)\n")
	problems, checked, err := check(root)
	if err != nil || len(problems) > 0 {
		t.Errorf("of what is right: %q, %v", problems, err)
	}
	if checked.files != 2 || checked.blocks != 1 || checked.links != 6 || checked.names != 1 {
		t.Errorf("checked %+v, want 2 files, 1 block, 6 links, 1 name", checked)
	}
	for _, c := range []struct{ text, want string }{
		{"[x](gone.md)", "there is no gone.md"},
		{"[x](../outside.md)", "there is no ../outside.md"},
		{"[x](b.md#it-was)", "no heading"},
		{"[x](#nothing)", "no heading"},
		{"[x](a/a.go#L1)", "no heading"},
		{"[x](/b.md)", "root of the site"},
		{"[x](http://example.com)", "https is meant"},
		{"[x](ftp://example.com)", "neither http"},
		{"[x](https:///path)", "no host"},
		{"`a/gone.go` does it", "no file a/gone.go"},
		{"```go\ny := 1\n```", "nothing compiles it"},
		{"```go\nonly.InAComment()\n```", "nothing compiles it"},
		{"```go\nx := 1", "has no end"},
		{"TO" + "DO: more", "left to do"},
	} {
		write("wrong.md", c.text+"\n")
		problems, _, err := check(root)
		if err != nil || !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%s: found %q, %v, want %s", c.text, problems, err, c.want)
		}
	}
}
