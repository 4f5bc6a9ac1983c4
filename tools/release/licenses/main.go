// Command licenses finds the licence of every module that packages of a released module reach, and fails on one that is missing,
// unknown or not allowed.
//
//	go run ./licenses
//
// What only tests reach is not looked at: an importer does not link it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"github.com/shardkit/shardkit/tools/release/modproxy"
)

// allowed are licences under which a module may come along with one under Apache-2.0, by SPDX id.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "CC0-1.0", "Unlicense"}

// files is what modules call their licence. Where there are several, all count.
var files = []string{"LICENSE*", "LICENCE*", "License*", "license*", "COPYING*", "UNLICENSE*"}

// read are licences that somebody has read, for modules whose file only names them.
var read = map[string]string{
	"github.com/golang/freetype": "FTL", // a choice of FTL or GPL; the FTL wants the credit that is in NOTICE
}

// enough is how much of a licence's file must be known text, in percent. Names and years are not.
const enough = 75

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	released, err := modproxy.Released(root)
	if err != nil {
		return err
	}
	folders := map[string]string{} // by module and version
	for _, folder := range released {
		if err := reached(filepath.Join(root, folder), folders); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	if len(folders) == 0 {
		return errors.New("no module is reached, which cannot be")
	}
	var problems []error
	count := map[string]int{}
	for _, m := range slices.Sorted(maps.Keys(folders)) {
		path, _, _ := strings.Cut(m, " ")
		found, err := read[path], error(nil)
		if found == "" {
			found, err = licenceOf(folders[m], allowed, licensecheck.Scan)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", m, err))
			continue
		}
		count[found]++
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	var counted []string
	for _, id := range slices.Sorted(maps.Keys(count)) {
		counted = append(counted, fmt.Sprintf("%d %s", count[id], id))
	}
	_, err = fmt.Fprintf(out, "licenses: %d modules come along: %s\n", len(folders), strings.Join(counted, ", "))
	return err
}

// reached adds the other projects' modules whose packages are linked into the module's.
func reached(dir string, folders map[string]string) error {
	cmd := exec.Command("go", "list", "-deps", "-json=Module", "./...")
	var stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "GOWORK=off"), &stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			Module *struct{ Path, Version, Dir string }
		}
		if err := d.Decode(&p); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if m := p.Module; m != nil && !strings.HasPrefix(m.Path, modproxy.Prefix) {
			folders[m.Path+" "+m.Version] = m.Dir
		}
	}
}

// licenceOf is the SPDX ids of the licences in a module's folder, as scan tells them from a file's text.
func licenceOf(dir string, allowed []string, scan func([]byte) licensecheck.Coverage) (string, error) {
	var ids []string
	for _, pattern := range files {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			var folder *fs.PathError
			if errors.As(err, &folder) && isDir(name) || strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".docs") {
				continue // of documentation, which is not linked
			}
			if err != nil {
				return "", err
			}
			cover := scan(text)
			if cover.Percent < enough {
				return "", fmt.Errorf("%s is not a licence that is known (%.0f %% of its text is)", filepath.Base(name), cover.Percent)
			}
			for _, m := range cover.Match {
				if !slices.Contains(allowed, m.ID) {
					return "", fmt.Errorf("%s is %s, which is not among those allowed: %s", filepath.Base(name), m.ID, strings.Join(allowed, ", "))
				}
				ids = append(ids, m.ID)
			}
		}
	}
	if len(ids) == 0 {
		return "", errors.New("no licence file")
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " and "), nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
