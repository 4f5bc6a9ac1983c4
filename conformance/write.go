package conformance

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

func (s *suite) report() Report {
	r := Report{
		Format: Format, Suite: moduleOf(repository + "conformance"),
		Implementation: Implementation{Name: s.Name},
		Servers:        s.servers,
		Platform:       Platform{OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), Race: raceOn},
		Time:           s.started.UTC().Truncate(time.Second),
		Seed:           s.Seed,
		Reproduce:      s.again(""),
		Profiles:       rollup(s.Profiles, s.results),
		Cases:          s.results,
	}
	if s.Client != "" {
		m := moduleOf(s.Client)
		r.Implementation.Client = &m
	}
	return r
}

// again is the command that runs a case, or all of them, again.
func (s *suite) again(id string) string {
	command := s.Rerun
	if id == "" { // without what chooses a case
		for _, words := range []string{" --case {case}", "$/^{case}"} {
			command = strings.ReplaceAll(command, words, "")
		}
	}
	return strings.NewReplacer("{case}", id, "{seed}", fmt.Sprint(s.Seed)).Replace(command)
}

const repository = "github.com/shardkit/shardkit/"

// moduleOf finds a module's version in the build information.
func moduleOf(path string) Module {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return moduleIn(info, path)
}

func moduleIn(info *debug.BuildInfo, path string) Module {
	m := Module{Path: path, Version: "(devel)"}
	for _, d := range append(info.Deps, &info.Main) {
		if d.Path == path {
			for d.Replace != nil { // by a folder, which has no version
				d = d.Replace
			}
			m.Version = cmp.Or(d.Version, m.Version)
		}
	}
	if m.Version == "(devel)" && strings.HasPrefix(path, repository) && strings.HasPrefix(info.Main.Path, repository) {
		m.Version = ofTree(info)
	}
	return m
}

// ofTree is the version of what was built from the program's own tree: the program's, else "(devel)" and the commit.
func ofTree(info *debug.BuildInfo) string {
	version := cmp.Or(info.Main.Version, "(devel)")
	if version != "(devel)" {
		return version
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			version += " " + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			version += "+dirty"
		}
	}
	return version
}

// Write writes the report as JSON into the file, and beside it, under the same name with another ending, as JUnit XML (.xml)
// and as a Markdown table (.md).
func (r *Report) Write(file string) error {
	if err := r.Validate(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("conformance: %w", err)
	}
	base := strings.TrimSuffix(file, filepath.Ext(file))
	for name, content := range map[string][]byte{
		file: append(text, '\n'), base + ".xml": r.JUnit(), base + ".md": []byte(r.Markdown()),
	} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return fmt.Errorf("conformance: %w", err)
		}
	}
	return nil
}

// JUnit returns the report in the form that CI servers read.
func (r *Report) JUnit() []byte {
	type message struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *message `xml:"failure,omitempty"`
		Error   *message `xml:"error,omitempty"`
		Skipped *message `xml:"skipped,omitempty"`
	}
	type testsuite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"timestamp,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	suite := testsuite{Name: "shardkit conformance: " + r.Implementation.Name, Tests: len(r.Cases), Time: r.Time.Format("2006-01-02T15:04:05")}
	for _, c := range r.Cases {
		tc := testcase{Class: string(c.Profile) + "." + string(c.Tier), Name: c.ID + " " + c.Name, Time: fmt.Sprintf("%.3f", c.Took)}
		m := &message{string(c.Status), printable(c.text())}
		if c.Reason != "" {
			m.Message += " (" + string(c.Reason) + ")"
		}
		switch c.Status {
		case StatusPass:
		case StatusFail, StatusUnexpectedPass:
			tc.Failure = m
			suite.Failures++
		case StatusError:
			tc.Error = m
			suite.Errors++
		default:
			tc.Skipped = m
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, tc)
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		panic(err) // strings and numbers alone
	}
	return append([]byte(xml.Header), append(text, '\n')...)
}

// printable leaves out what XML cannot hold.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == '\ufffe' || r == '\uffff' {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// Markdown returns the report as a page for people.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Conformance of %s\n\n", r.Implementation.Name)
	if c := r.Implementation.Client; c != nil {
		fmt.Fprintf(&b, "- client: %s %s\n", c.Path, c.Version)
	}
	if r.Servers.Name != "" {
		fmt.Fprintf(&b, "- servers: %s (%s)\n", r.Servers, r.Servers.Provider)
	}
	fmt.Fprintf(&b, "- suite: %s %s, seed %d, %s %s/%s, %s\n", r.Suite.Path, r.Suite.Version, r.Seed, r.Platform.Go, r.Platform.OS, r.Platform.Arch, r.Time.Format(time.DateOnly))
	fmt.Fprintf(&b, "- again: `%s`\n\n", r.Reproduce)
	b.WriteString("| profile | verdict | core | extended |\n|---|---|---|---|\n")
	for _, p := range r.Profiles {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.Profile, p.Verdict, Counts(p.Core), Counts(p.Extended))
	}
	b.WriteString("\n| case | | level | tier | status |\n|---|---|---|---|---|\n")
	for _, c := range r.Cases {
		status := string(c.Status)
		if c.Reason != "" {
			status += " (" + string(c.Reason) + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.ID, c.Name, c.Level, c.Tier, status)
	}
	for _, c := range r.Failed() {
		fmt.Fprintf(&b, "\n## %s %s\n\n```\n%s\n```\n", c.ID, c.Name, strings.ReplaceAll(c.text(), "```", "'''"))
	}
	return b.String()
}

// String is a line such as "redis 7.0.15, 3 masters, 3 replicas, 1 shard".
func (s Servers) String() string {
	text := s.Name + " " + s.Version
	for _, part := range []struct {
		n    int
		name string
	}{{s.Masters, "master"}, {s.Replicas, "replica"}, {s.Shards, "shard"}} {
		switch {
		case part.n == 1:
			text += ", 1 " + part.name
		case part.n > 1:
			text += fmt.Sprintf(", %d %ss", part.n, part.name)
		}
	}
	return text
}

// Counts is a line such as "30 pass, 1 fail".
func Counts(of map[Status]int) string {
	var parts []string
	for _, s := range Statuses {
		if n := of[s]; n > 0 {
			parts = append(parts, fmt.Sprint(n, " ", s))
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}
