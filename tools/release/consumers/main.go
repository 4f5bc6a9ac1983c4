// Command consumers proves what an importer gets. It packs each released module as a tag would, its go.mod without replace
// lines, into a module proxy of files; builds programs that import one module each, outside of the workspace; compares
// the modules that come along with a list; and runs the programs on real servers.
//
//	go run . [-update] [-keep] [name ...]
//
// A consumer is a folder of testdata: main.go, and modules.txt, which -update writes anew.
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
	"slices"
	"strings"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tools/release/modproxy"
)

// version is the one that the modules require of each other.
const version = "v0.0.0"

func main() {
	update := flag.Bool("update", false, "write the lists of modules anew")
	keep := flag.Bool("keep", false, "keep the folder that everything is built in, and print it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args(), *update, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "consumers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string, update, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "shardkit-consumers-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Println("everything is in", dir)
	} else {
		defer func() { err = errors.Join(err, removeAll(dir)) }()
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		return err
	}
	released, err := modproxy.Released(root)
	if err != nil {
		return err
	}
	proxy := filepath.Join(dir, "proxy")
	for _, folder := range released {
		if err := modproxy.Pack(root, proxy, folder, version); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	fmt.Printf("%d modules packed\n", len(released))
	cluster, err := harness.StartCluster(ctx, harness.Options{})
	if err != nil {
		return err
	}
	defer cluster.Close()
	shards, err := harness.StartShards(ctx, harness.Options{Shards: 2})
	if err != nil {
		return err
	}
	defer shards.Close()
	w := &workshop{dir: dir, env: append(modproxy.Env(proxy, filepath.Join(dir, "modules")),
		"CLUSTER="+strings.Join(cluster.Addrs(), ","), "SHARDS="+strings.Join(shards.Addrs(), ","),
	)}

	found, err := os.ReadDir("testdata")
	if err != nil {
		return err
	}
	failed := 0
	for _, consumer := range found {
		if len(names) > 0 && !slices.Contains(names, consumer.Name()) {
			continue
		}
		said, err := w.consume(ctx, consumer.Name(), update)
		if err != nil {
			failed++
			said = "FAILED: " + err.Error()
		}
		fmt.Printf("%-12s %s\n", consumer.Name(), said)
	}
	if len(names) == 0 {
		for _, command := range []string{"cmd/shardkit", "tools/tablegen"} {
			if err := w.install(ctx, command); err != nil {
				failed++
				fmt.Printf("go install %s: FAILED: %v\n", command, err)
				continue
			}
			fmt.Printf("go install %s: ok\n", command)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d failed", failed)
	}
	return nil
}

// workshop is where consumers are built.
type workshop struct {
	dir string
	env []string
}

// consume builds a consumer in a module of its own, and runs it. It returns what the program said.
func (w *workshop) consume(ctx context.Context, name string, update bool) (string, error) {
	from, dir := filepath.Join("testdata", name), filepath.Join(w.dir, "consumer-"+name)
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return "", err
	}
	if _, err := w.command(ctx, dir, "go", "mod", "init", "example.com/"+name); err != nil {
		return "", err
	}
	// Released modules have one version here, so tidy finds it.
	if _, err := w.command(ctx, dir, "go", "mod", "tidy"); err != nil {
		return "", err
	}
	if _, err := w.command(ctx, dir, "go", "build", "-o", "consumer", "."); err != nil {
		return "", err
	}
	got, err := w.command(ctx, dir, "go", "list", "-m", "-f", "{{if not .Main}}{{.Path}}{{end}}", "all")
	if err != nil {
		return "", err
	}
	got = strings.TrimLeft(got, "\n")
	list := filepath.Join(from, "modules.txt")
	if update {
		if err := os.WriteFile(list, []byte(got), 0o644); err != nil {
			return "", err
		}
	}
	want, err := os.ReadFile(list)
	if err != nil {
		return "", err
	}
	if diff := difference(string(want), got); diff != "" {
		return "", fmt.Errorf("the modules that come along are not those of %s (-update writes it anew):%s", list, diff)
	}
	said, err := w.command(ctx, dir, "./consumer")
	return fmt.Sprintf("%2d modules; %s", strings.Count(got, "\n"), strings.TrimSpace(said)), err
}

func (w *workshop) install(ctx context.Context, command string) error {
	w = &workshop{w.dir, append(slices.Clone(w.env), "GOBIN="+filepath.Join(w.dir, "bin"))}
	if _, err := w.command(ctx, w.dir, "go", "install", modproxy.Prefix+command+"@"+version); err != nil {
		return err
	}
	_, err := w.command(ctx, w.dir, filepath.Join(w.dir, "bin", filepath.Base(command)), "--help")
	return err
}

func (w *workshop) command(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, w.env, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// difference names the lines that only one of two lists has.
func difference(want, got string) string {
	var out strings.Builder
	a, b := strings.Fields(want), strings.Fields(got)
	for _, m := range a {
		if !slices.Contains(b, m) {
			out.WriteString("\n  gone: " + m)
		}
	}
	for _, m := range b {
		if !slices.Contains(a, m) {
			out.WriteString("\n  new:  " + m)
		}
	}
	return out.String()
}

// removeAll removes a folder that holds a module cache of read-only files.
func removeAll(dir string) error {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(path, 0o755)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
