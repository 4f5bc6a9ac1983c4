// Command release makes a release of every released module, in a clone, up to the push, and tries it.
//
//	go run . [-version v0.1.0] [-keep]
//
// All modules get one version. In the order of modules.txt each one loses its replace lines, requires its siblings at the version, is tidied
// and built without the workspace, with what came before it from a module proxy of files. One commit holds the result, one tag a module
// names it; both are in the clone alone, which -keep leaves behind for `git push --tags`.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"github.com/shardkit/shardkit/tools/release/modproxy"
)

func main() {
	version := flag.String("version", "v0.1.0", "the version of all modules")
	keep := flag.Bool("keep", false, "keep the clone with its commit and tags, and print where it is")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, "../..", *version, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, version string, keep bool) (err error) {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("-version %s is not vMAJOR.MINOR.PATCH", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return fmt.Errorf("-version %s: from v2 on a module's path ends in its major version, and none here does", version)
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return err
	}
	if dirty, err := command(ctx, root, nil, "git", "status", "--porcelain"); err != nil || dirty != "" {
		return errors.Join(err, errors.New("the tree is dirty, and a release is what is committed: commit or stash\n"+dirty))
	}
	dir, err := os.MkdirTemp("", "shardkit-release-")
	if err != nil {
		return err
	}
	if !keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	r := &release{version: version, clone: filepath.Join(dir, "clone"), proxy: filepath.Join(dir, "proxy")}
	r.env = modproxy.Env(r.proxy, filepath.Join(dir, "modules"))
	if _, err := command(ctx, root, nil, "git", "clone", "-q", "--no-hardlinks", root, r.clone); err != nil {
		return err
	}
	if r.folders, err = modproxy.Released(r.clone); err != nil {
		return err
	}
	var problems []error
	for i, folder := range r.folders {
		found := append(complete(r.clone, folder), ordered(r.clone, folder, r.folders[:i])...)
		for _, p := range found {
			problems = append(problems, fmt.Errorf("%s: %w", folder, p))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	for _, folder := range r.folders {
		if err := r.prepare(ctx, folder); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	if err := r.tag(ctx); err != nil {
		return err
	}
	fmt.Printf("%d tags on one commit; nothing was pushed\n", len(r.folders))
	if keep {
		fmt.Printf("they are in %s: git push --tags from there\n", r.clone)
	}
	return nil
}

// release is one under way.
type release struct {
	version      string
	folders      []string
	clone, proxy string
	env          []string
}

func (r *release) tagOf(folder string) string { return folder + "/" + r.version }

// prepare brings a module of the clone into the state of its release, builds it, and puts it into the proxy for those after it.
func (r *release) prepare(ctx context.Context, folder string) error {
	if tags, err := command(ctx, r.clone, nil, "git", "tag", "--list", r.tagOf(folder)); err != nil || tags != "" {
		return errors.Join(err, fmt.Errorf("the tag %s is there already", r.tagOf(folder)))
	}
	fmt.Println(r.tagOf(folder))
	dir := filepath.Join(r.clone, folder)
	before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	f, err := modproxy.Mod(r.clone, folder, r.version)
	if err != nil {
		return err
	}
	text, err := f.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o644); err != nil {
		return err
	}
	if n := strings.Count(string(before), "=> "); n > 0 {
		fmt.Printf("  %d replace lines stripped\n", n)
	}
	for _, q := range f.Require {
		if strings.HasPrefix(q.Mod.Path, modproxy.Prefix) {
			fmt.Printf("  requires %s %s\n", strings.TrimPrefix(q.Mod.Path, modproxy.Prefix), q.Mod.Version)
		}
	}
	if _, err := command(ctx, dir, r.env, "go", "mod", "tidy"); err != nil {
		return err
	}
	if _, err := command(ctx, dir, r.env, "go", "build", "-o", os.DevNull, "./..."); err != nil {
		return err
	}
	fmt.Println("  tidied, built by itself")
	return modproxy.Pack(r.clone, r.proxy, folder, r.version)
}

// tag commits and tags, and checks that what importers will get at the tags is what was built.
func (r *release) tag(ctx context.Context) error {
	git := func(args ...string) error {
		args = append([]string{"git", "-c", "user.name=release", "-c", "user.email=release@localhost"}, args...)
		_, err := command(ctx, r.clone, nil, args...)
		return err
	}
	if err := git("add", "-A"); err != nil { // a go.sum may be new
		return err
	}
	if err := git("commit", "-q", "-m", "release "+r.version); err != nil {
		return err
	}
	for _, folder := range r.folders {
		if err := git("tag", r.tagOf(folder)); err != nil {
			return err
		}
		m := module.Version{Path: modproxy.Prefix + folder, Version: r.version}
		tagged := filepath.Join(r.proxy, "tagged.zip")
		archive, err := os.Create(tagged)
		if err != nil {
			return err
		}
		if err := errors.Join(zip.CreateFromVCS(archive, m, r.clone, r.tagOf(folder), folder), archive.Close()); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		want, err := dirhash.HashZip(filepath.Join(r.proxy, m.Path, "@v", r.version+".zip"), dirhash.Hash1)
		if err != nil {
			return err
		}
		if got, err := dirhash.HashZip(tagged, dirhash.Hash1); err != nil || got != want {
			return errors.Join(err, fmt.Errorf("%s: what is tagged is not what was built", folder))
		}
	}
	return nil
}

func command(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}
