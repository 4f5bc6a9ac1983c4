// Command docs checks what the documentation says, offline: each Go block of a Markdown file is code that the compiler sees, each link leads
// somewhere, each file that is named is there, and nothing is left to do.
//
//	go run . [ROOT]
//
// A Go block is looked for in the repository's .go files, indented in whatever way; comments do not count. Addresses elsewhere are checked for
// their form alone. The commands in sh blocks are checked by a test of cmd/shardkit, against the flags that there are.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	root := "../.."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	problems, checked, err := check(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, "docs:", p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
	fmt.Println(checked)
}

// counts are what was checked.
type counts struct{ files, blocks, links, names int }

func (c counts) String() string {
	return fmt.Sprintf("docs: %d files: %d blocks of Go are compiled code, %d links lead somewhere, %d files that are named exist", c.files, c.blocks, c.links, c.names)
}

func check(root string) (problems []string, checked counts, err error) {
	files, err := tracked(root)
	if err != nil {
		return nil, counts{}, err
	}
	docs := map[string]document{}
	var code []string
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // git still lists it
			continue
		}
		if err != nil {
			return nil, counts{}, err
		}
		switch filepath.Ext(name) {
		case ".go":
			code = append(code, uncommented(string(text)))
		case ".md":
			docs[name] = parse(string(text))
		}
		if word := leftToDo(name, string(text)); word != "" {
			problems = append(problems, name+": "+word)
		}
	}
	all := strings.Join(code, "\n\x00\n") // no block spans files
	for _, name := range files {
		doc, ok := docs[name]
		if !ok {
			continue
		}
		checked.files++
		for _, b := range doc.blocks {
			switch {
			case !b.closed:
				problems = append(problems, fmt.Sprintf("%s:%d: the code block has no end", name, b.line))
			case b.language == "go":
				checked.blocks++
				if !strings.Contains(all, "\n"+dedented(b.text)+"\n") {
					problems = append(problems, fmt.Sprintf("%s:%d: this is in no .go file, so nothing compiles it:\n%s", name, b.line, b.text))
				}
			}
		}
		for _, l := range doc.links {
			checked.links++
			if why := broken(root, name, l.target, docs); why != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s: %s", name, l.line, l.target, why))
			}
		}
		for _, n := range doc.names {
			checked.names++
			if !exists(root, name, n.target) {
				problems = append(problems, fmt.Sprintf("%s:%d: there is no file %s", name, n.line, n.target))
			}
		}
	}
	return problems, checked, nil
}

// tracked lists the files that git has or would have; in a folder without git, all.
func tracked(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
	}
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(root, path)
			files = append(files, name)
		}
		return err
	})
	return files, err
}
