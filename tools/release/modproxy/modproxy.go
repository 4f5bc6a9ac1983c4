// Package modproxy lays released modules out as a module proxy of files has them, so that what their importers get can be
// tried before there is a tag.
package modproxy

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

// Prefix is what the path of each module begins with; the rest is its folder.
const Prefix = "github.com/shardkit/shardkit/"

// Released returns the folders of the modules that modules.txt releases, in its order.
func Released(root string) ([]string, error) {
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
	return released, nil
}

// Mod returns a folder's go.mod as a release has it: without replace lines, which go install refuses and importers do not see, and
// with the version for modules of this repository.
func Mod(root, folder, version string) (*modfile.File, error) {
	path := filepath.Join(root, folder, "go.mod")
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
	for _, r := range f.Require {
		if strings.HasPrefix(r.Mod.Path, Prefix) {
			if err := f.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	f.Cleanup()
	return f, nil
}

// Pack puts a folder's module into the proxy. Files are those that git has, or would have.
func Pack(root, proxy, folder, version string) error {
	f, err := Mod(root, folder, version)
	if err != nil {
		return err
	}
	mod, err := f.Format()
	if err != nil {
		return err
	}
	files, err := filesOf(root, folder, mod)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := zip.Create(&archive, module.Version{Path: Prefix + folder, Version: version}, files); err != nil {
		return err
	}
	at := filepath.Join(proxy, Prefix+folder, "@v")
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

// Env is the environment of a go command that takes shardkit's modules from the proxy, all others from this machine's module
// cache or where it takes them else, and keeps what it unpacks in a cache of its own.
func Env(proxy, cache string) []string {
	return append(os.Environ(),
		"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOMODCACHE="+cache, "GONOSUMDB="+Prefix+"*",
		"GOPROXY=file://"+proxy+",file://"+goEnv("GOMODCACHE")+"/cache/download,"+goEnv("GOPROXY"),
	)
}

func goEnv(name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return "direct"
	}
	return strings.TrimSpace(string(out))
}

// filesOf lists a module's files: without the modules within it, and with the repository's licence, which the go command adds.
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
