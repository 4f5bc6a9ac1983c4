package main

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// broken says why a link leads nowhere.
func broken(root, from, target string, docs map[string]document) string {
	if target == "" {
		return "empty"
	}
	u, err := url.Parse(target)
	if err != nil {
		return "not an address"
	}
	if u.Scheme != "" {
		switch {
		case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto":
			return "neither http nor https nor mailto"
		case u.Scheme != "mailto" && u.Host == "":
			return "no host"
		case u.Scheme == "http" && !local(u.Hostname()):
			return "http: https is meant"
		}
		return ""
	}
	to := from
	if u.Path != "" {
		if strings.HasPrefix(u.Path, "/") {
			return "begins at the root of the site, not of the repository"
		}
		to = path.Join(path.Dir(from), u.Path)
		if _, err := os.Stat(filepath.Join(root, to)); err != nil || strings.HasPrefix(to, "../") {
			return "there is no " + to
		}
	}
	if doc, ok := docs[to]; u.Fragment != "" && (!ok || !doc.anchors[u.Fragment]) {
		return "no heading of " + to + " makes this anchor"
	}
	return ""
}

func local(host string) bool { return host == "localhost" || strings.HasPrefix(host, "127.") }

// exists finds a file that a document names: from the root, from the document's folder, or in a module that the sentence is about.
func exists(root, from, name string) bool {
	for dir := path.Dir(from); ; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, name)); err == nil {
			return true
		}
		if dir == "." {
			break
		}
	}
	// `lua/lease.lua` after `tiercache/load.go` is told by its end.
	found, _ := filepath.Glob(filepath.Join(root, "*", name))
	deeper, _ := filepath.Glob(filepath.Join(root, "*", "internal", "*", name))
	return len(found)+len(deeper) > 0
}

var toDo = regexp.MustCompile(`\b(` + "TO" + "DO|FIX" + "ME" + `)\b`)

// leftToDo is the first line that says that something is missing.
func leftToDo(name, text string) string {
	switch filepath.Ext(name) {
	case ".go", ".md", ".lua", ".sh", ".yml", "":
		if at := toDo.FindStringIndex(text); at != nil {
			line, _, _ := strings.Cut(text[at[0]:], "\n")
			return "left to do: " + line
		}
	}
	return ""
}
