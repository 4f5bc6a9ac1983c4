package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

const root = "../.." // of the repository

// What the documentation tells people to type is shell, its shardkit commands have the flags that it gives them, and its make targets are in the
// Makefile. So are the examples of --help.
func TestDocumentedCommands(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, "modules.txt")); err != nil {
		t.Skip("not in the repository, so its documentation is not there")
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]int{}
	check := func(where, script string) {
		for _, words := range calls(t, where, script) {
			commands[words[0]]++
			switch words[0] {
			case "shardkit":
				if err := parse(words[1:]); err != nil {
					t.Errorf("%s: %s: %v", where, strings.Join(words, " "), err)
				}
			case "make":
				for _, target := range words[1:] {
					if !strings.Contains(target, "=") && !strings.Contains(string(makefile), "\n"+target+":") {
						t.Errorf("%s: make %s: there is no such target", where, target)
					}
				}
			}
		}
	}
	for _, file := range markdown(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
			check(file, block[1])
		}
	}
	parser, err := newParser(t.Context(), console{out: io.Discard, err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(true) {
		for _, example := range regexp.MustCompile(`(?m)^  (.*\bshardkit .*)$`).FindAllStringSubmatch(leaf.Detail, -1) {
			check(leaf.Path()+" --help", example[1])
		}
	}
	if commands["shardkit"] < 20 || commands["make"] < 2 {
		t.Errorf("found only %v", commands)
	}
}

// The check of commands finds what is wrong with them.
func TestParseRefuses(t *testing.T) {
	for _, script := range []string{"shardkit set publish --name a --fast x", "a | shardkit slots", "go run ./cmd/shardkit serve --port 1", "X=$(bin/shardkit ring)"} {
		found := calls(t, "here", script)
		refused := slices.ContainsFunc(found, func(words []string) bool { return words[0] == "shardkit" && parse(words[1:]) != nil })
		if !refused {
			t.Errorf("%s: nothing is wrong with %v", script, found)
		}
	}
}

// calls returns the commands of a script, word by word: those of the binary begin with shardkit, however it is started.
func calls(t *testing.T, where, script string) (found [][]string) {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		t.Errorf("%s: %v in\n%s", where, err, script)
		return nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		var words []string
		for _, w := range call.Args {
			word, err := expand.Literal(nil, w)
			if err != nil { // a substitution
				word = "x"
			}
			words = append(words, word)
		}
		if len(words) > 2 && words[0] == "go" && words[1] == "run" && strings.HasSuffix(words[2], "cmd/shardkit") {
			words = words[2:]
		}
		words[0] = filepath.Base(words[0])
		found = append(found, words)
		return true
	})
	return found
}

func parse(args []string) error {
	parser, err := newParser(context.Background(), console{out: io.Discard, err: io.Discard}, func(int) {})
	if err != nil {
		return err
	}
	if _, err = parser.Parse(args); errors.Is(err, fs.ErrNotExist) {
		return nil // the reader has that file
	}
	return err
}

func markdown(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
