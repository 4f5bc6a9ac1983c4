package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// An author's module, outside the workspace, imports the suite and his own adapter. It builds and runs, and downloads neither a Redis client of
// ours nor what containers and generators take.
func TestAuthorsModule(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mod := "module example.com/mine\n\ngo 1.26.0\n\nrequire (\n"
	replace := ""
	for _, m := range []string{"conformance", "harness", "replset", "ring", "slotmap", "tiercache"} {
		mod += "\tgithub.com/shardkit/shardkit/" + m + " v0.0.0\n"
		replace += "replace github.com/shardkit/shardkit/" + m + " => " + filepath.Join(root, m) + "\n"
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", mod+")\n\n"+replace)
	write("mine.go", `// Package mine is an adapter: here of the backend and the shard without a server.
package mine

import (
	"github.com/shardkit/shardkit/replset/memory"
	shardmemory "github.com/shardkit/shardkit/tiercache/memory"
)

func New() *memory.Backend { return memory.New() }

func NewShard() *shardmemory.Shard { return shardmemory.New(nil) }
`)
	write("mine_test.go", `package mine

import (
	"context"
	"testing"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/tiercache"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Target{
		Name: "mine", Serverless: true,
		Backend: func(context.Context, conformance.Connection) (replset.Backend, func(), error) { return New(), nil, nil },
		Shard: func(context.Context, conformance.Connection) (tiercache.Shard, func(), error) { return NewShard(), nil, nil },
	})
}
`)
	command := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		report := filepath.Join(dir, "report.json")
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "SHARDKIT_REPORT="+report)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	command("mod", "tidy")
	command("test", "-count=1", ".")
	report, err := ReadReport(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Failed()) > 0 || report.Profiles[1].Core[StatusPass] < 20 || report.Profiles[2].Core[StatusPass] < 20 {
		t.Errorf("the report counts %v", report.Profiles)
	}
	modules := command("list", "-m", "all")
	unwanted := regexp.MustCompile(`(?m)^.*(gopter|docker|testcontainers|moby|containerd|redis/go-redis|redis/rueidis|redigo|miniredis).*$`)
	if bad := unwanted.FindAllString(modules, -1); bad != nil {
		t.Errorf("the module list has %q:\n%s", bad, modules)
	}
	if n := strings.Count(modules, "\n"); n < 6 {
		t.Errorf("the module list is short:\n%s", modules)
	}
	t.Logf("go list -m all:\n%s", modules)
}
