package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"
)

// SchemaVersion of reports. It goes up when a field changes its meaning or goes away; new fields alone do not raise it.
const SchemaVersion = 1

// Report is the results of one or more scenarios, as stored in a file.
type Report struct {
	Schema  int       `json:"schema"` // SchemaVersion of the writer
	Date    time.Time `json:"date"`
	Machine Machine   `json:"machine"`

	// Servers says in a few words what was measured on, such as "3 masters, redis-server 7.0.15"; the caller's to set.
	Servers string `json:"servers,omitempty"`

	// Modules is the version of each Go module in the program that has one, its Redis client's among them, and the program's
	// own, or else "(devel)" and the commit that it was built from.
	Modules map[string]string `json:"modules,omitempty"`

	Results []*Result `json:"results"`
}

// NewReport stamps results with the machine and the date.
func NewReport(results ...*Result) *Report {
	return &Report{Schema: SchemaVersion, Date: time.Now().UTC().Round(time.Second), Machine: thisMachine(), Modules: modules(), Results: results}
}

// modules is empty in a program that was built without module support.
func modules() map[string]string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	return modulesOf(info)
}

func modulesOf(info *debug.BuildInfo) map[string]string {
	versions := map[string]string{}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Replace == nil && m.Version != "" && m.Version != "(devel)" {
			versions[m.Path] = m.Version
		}
	}
	if versions[info.Main.Path] == "" && info.Main.Path != "" {
		commit := ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				commit += "+dirty"
			}
		}
		if commit != "" {
			versions[info.Main.Path] = "(devel) " + commit
		}
	}
	return versions
}

// Where tells in one line when, on which machine and on which servers the report was made.
func (r *Report) Where() string {
	m := r.Machine
	cpu := m.CPU
	if cpu == "" {
		cpu = m.Arch
	}
	s := fmt.Sprintf("%s, %d CPUs (%s), %s/%s, %s", r.Date.Format(time.DateOnly), m.CPUs, cpu, m.OS, m.Arch, m.Go)
	if r.Servers != "" {
		s += "; " + r.Servers
	}
	return s
}

// WriteJSON writes the report to a file. A reader sees the old file or the whole new one, and an error leaves the old
// one as it was. A device or pipe is written to directly.
func (r *Report) WriteJSON(file string) error {
	return writeFile(file, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	})
}

// ReadReport reads what WriteJSON wrote.
func ReadReport(file string) (*Report, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("bench: cannot read the report: %w", err)
	}
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("bench: %s is not a report, was it edited or cut off? %w", file, err)
	}
	switch {
	case r.Schema < 1:
		return nil, fmt.Errorf("bench: %s is not a report: it has no schema number", file)
	case r.Schema > SchemaVersion:
		return nil, fmt.Errorf("bench: %s has schema %d, this program reads up to %d: update it", file, r.Schema, SchemaVersion)
	}
	return &r, nil
}

func writeFile(file string, write func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			// The path errors inside name a temporary file that means nothing to the reader.
			if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
				err = pathErr.Err
			}
			err = fmt.Errorf("bench: cannot write %s: %w: free some space or choose another path", file, err)
		}
	}()
	// Follow a symbolic link, or renaming would replace it.
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	return err
}
