package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/shardkit/shardkit/tools/release/modproxy"
)

// complete says what a released module lacks.
func complete(root, folder string) (problems []error) {
	dir := filepath.Join(root, folder)
	if text, err := os.ReadFile(filepath.Join(dir, "README.md")); err != nil || !strings.HasPrefix(string(text), "# ") {
		problems = append(problems, errors.New("no README.md that begins with a title"))
	}
	documented := map[string]bool{} // package folders, whether there is a package comment
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if path != dir && (err == nil || d.Name() == "internal" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		at := filepath.Dir(path)
		documented[at] = documented[at] || file.Doc != nil
		return nil
	})
	if err != nil {
		problems = append(problems, err)
	}
	for at, ok := range documented {
		if !ok {
			rel, _ := filepath.Rel(root, at)
			problems = append(problems, fmt.Errorf("package %s has no package comment", rel))
		}
	}
	return problems
}

// ordered says which of this repository's modules the folder's one requires that do not come before it.
func ordered(root, folder string, before []string) (problems []error) {
	path := filepath.Join(root, folder, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return []error{err}
	}
	f, err := modfile.Parse(path, text, nil)
	if err != nil {
		return []error{err}
	}
	for _, q := range f.Require {
		sibling, ok := strings.CutPrefix(q.Mod.Path, modproxy.Prefix)
		if ok && !slices.Contains(before, sibling) {
			problems = append(problems, fmt.Errorf("requires %s, which modules.txt does not release before it", sibling))
		}
	}
	return problems
}
