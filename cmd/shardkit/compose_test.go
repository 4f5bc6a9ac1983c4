package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// The commands of examples/compose run: redis-server takes the shards' flags, and the proxy serves on shards of those names.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "examples/compose/compose.yml"))
	if os.IsNotExist(err) {
		t.Skip("not in the repository, so its examples are not there")
	}
	if err != nil {
		t.Fatal(err)
	}
	if docker, err := exec.LookPath("docker"); err == nil && exec.CommandContext(t.Context(), docker, "compose", "version").Run() == nil {
		out, err := exec.CommandContext(t.Context(), docker, "compose", "-f", filepath.Join(root, "examples/compose/compose.yml"), "config", "-q").CombinedOutput()
		if err != nil {
			t.Errorf("docker compose config: %v\n%s", err, out)
		}
	}
	var commands [][]string
	for _, m := range regexp.MustCompile(`(?m)^    command: (\[.*\])$`).FindAllSubmatch(text, -1) {
		var words []string
		if err := json.Unmarshal(m[1], &words); err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		commands = append(commands, words)
	}
	if len(commands) != 2 || commands[1][0] != "redis-server" {
		t.Fatalf("compose.yml has the commands %q, want the proxy's and the shards'", commands)
	}
	serve, redis := commands[0], commands[1]

	services := regexp.MustCompile(`(?m)^  ([\w-]+):`).FindAllStringSubmatch(string(text), -1)
	shards := harnesstest.Shards(t, harness.Options{Shards: len(services) - 1, Private: true, Args: redis[1:]})
	named := 0
	for _, s := range services {
		for i, word := range serve {
			if strings.Contains(word, s[1]+":6379") {
				serve[i] = strings.ReplaceAll(word, s[1]+":6379", shards.Addrs()[named])
				named++
			}
		}
	}
	at := slices.Index(serve, "--listen")
	if named != len(services)-1 || at < 0 || serve[at+1] != "0.0.0.0:7000" {
		t.Fatalf("the proxy's command is %q, want one that listens on port 7000 and names all of the shards", serve)
	}
	url, _ := serving(t, slices.Delete(serve[1:], at-1, at+1)...)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		code, health := curl(t, "GET", url+"/health", "")
		if code == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the proxy is not healthy after 20 s: %d %s", code, health)
		}
	}
}
