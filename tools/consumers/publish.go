package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	prefix = "github.com/shardkit/shardkit/"
	// version is the one that the modules require of each other.
	version = "v0.0.0"
)

// publish lays each released module out as a module proxy has it.
func publish(root, proxy string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, "modules.txt"))
	if err != nil {
		return nil, err
	}
	var released []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) == 2 && f[1] == "release" {
			released = append(released, f[0])
		}
	}
	for _, folder := range released {
		if err := pack(root, proxy, folder); err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
	}
	return released, nil
}

func pack(root, proxy, folder string) error {
	mod, err := releasedMod(filepath.Join(root, folder, "go.mod"))
	if err != nil {
		return err
	}
	files, err := filesOf(root, folder, mod)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := zip.Create(&archive, module.Version{Path: prefix + folder, Version: version}, files); err != nil {
		return err
	}
	at := filepath.Join(proxy, prefix+folder, "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"list":            []byte(version + "\n"),
		version + ".info": []byte(`{"Version":"` + version + `"}`),
		version + ".mod":  mod,
		version + ".zip":  archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(at, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// releasedMod is a go.mod without its replace lines, which go install refuses and importers do not see.
func releasedMod(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse(path, text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range f.Replace {
		if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	return f.Format()
}

// filesOf lists what git has, or would have, of a folder: without the modules within it, which zip leaves out by itself.
func filesOf(root, folder string, mod []byte) ([]zip.File, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = filepath.Join(root, folder)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	nested := map[string]bool{}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for _, name := range names {
		if filepath.Base(name) == "go.mod" && name != "go.mod" {
			nested[filepath.Dir(name)] = true
		}
	}
	var files []zip.File
	for _, name := range names {
		if inside(nested, name) {
			continue
		}
		f := file{name: name, path: filepath.Join(root, folder, name)}
		if name == "go.mod" {
			f.content = mod
		}
		if _, err := os.Stat(f.path); err == nil { // git still lists what was deleted
			files = append(files, f)
		}
	}
	license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	return append(files, file{name: "LICENSE", path: filepath.Join(root, "LICENSE"), content: license}), nil
}

func inside(folders map[string]bool, name string) bool {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if folders[dir] {
			return true
		}
	}
	return false
}

// file is one of a module's: on disk, or with other content.
type file struct {
	name, path string
	content    []byte
}

func (f file) Path() string                { return f.name }
func (f file) Lstat() (os.FileInfo, error) { return os.Lstat(f.path) }
func (f file) Open() (io.ReadCloser, error) {
	if f.content != nil {
		return io.NopCloser(bytes.NewReader(f.content)), nil
	}
	return os.Open(f.path)
}
