package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatAModuleLacks(t *testing.T) {
	const mod = "module github.com/shardkit/shardkit/m\n\ngo 1.26.0\n\nrequire github.com/shardkit/shardkit/a v0.0.0\n"
	for _, c := range []struct {
		name   string
		files  map[string]string
		before []string
		want   string // "" for nothing
	}{
		{"nothing", map[string]string{"README.md": "# m\n", "doc.go": "// Package m is.\npackage m\n", "m.go": "package m\n"}, []string{"a"}, ""},
		{"what is internal needs no words", map[string]string{"README.md": "# m\n", "doc.go": "// Package m is.\npackage m\n", "internal/x/x.go": "package x\n", "sub/go.mod": "module sub\n", "sub/sub.go": "package sub\n"}, []string{"a"}, ""},
		{"a README", map[string]string{"doc.go": "// Package m is.\npackage m\n"}, []string{"a"}, "README.md"},
		{"a README's title", map[string]string{"README.md": "m\n", "doc.go": "// Package m is.\npackage m\n"}, []string{"a"}, "README.md"},
		{"a package comment", map[string]string{"README.md": "# m\n", "m.go": "package m\n"}, []string{"a"}, "no package comment"},
		{"one of a package within", map[string]string{"README.md": "# m\n", "doc.go": "// Package m is.\npackage m\n", "x/x.go": "package x\n"}, []string{"a"}, "m/x has no package comment"},
		{"one before it", map[string]string{"README.md": "# m\n", "doc.go": "// Package m is.\npackage m\n"}, []string{"b"}, "requires a"},
	} {
		root := t.TempDir()
		c.files["go.mod"] = mod
		for name, text := range c.files {
			path := filepath.Join(root, "m", name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		got := errors.Join(append(complete(root, "m"), ordered(root, "m", c.before)...)...)
		if (got == nil) != (c.want == "") || got != nil && !strings.Contains(got.Error(), c.want) {
			t.Errorf("%s: found %v, want %q", c.name, got, c.want)
		}
	}
}

func TestRefusedVersions(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v1", "v1.2", "v2.0.0", "v1.0.0+x"} {
		if err := run(t.Context(), "../..", version, false); err == nil || !strings.Contains(err.Error(), "-version") {
			t.Errorf("%q: got %v, want it refused", version, err)
		}
	}
}
