package ioredis

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/slotmap"
)

// start runs the peer on an empty input, which makes it install what it needs and end.
func start(t *testing.T, env ...string) (stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "./peer")
	if env != nil {
		cmd.Env = env
	}
	var b strings.Builder
	cmd.Stderr = &b
	err = cmd.Run()
	return strings.TrimSpace(b.String()), err
}

// session is a peer at work.
type session struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

// ask sends a request and returns the reply.
func (s session) ask(request map[string]any) (ok bool, text string) {
	s.t.Helper()
	line, err := json.Marshal(request)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		s.t.Fatal(err)
	}
	answer, err := s.out.ReadBytes('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	var reply struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		s.t.Fatalf("%q: %v", answer, err)
	}
	return reply.OK, reply.Error
}

func (s session) must(request map[string]any) {
	s.t.Helper()
	if ok, text := s.ask(request); !ok {
		s.t.Fatalf("%v: %s", request["op"], text)
	}
}

func TestPeer(t *testing.T) {
	// Node.js and a package registry are no part of what the project needs.
	if text, err := start(t); err != nil {
		t.Skipf("the peer does not run here: %s (%v)", text, err)
	}
	c := harnesstest.Cluster(t, harness.Options{Private: true, Password: "secret"})
	for _, way := range []string{"./peer", "./peer-cluster"} {
		t.Run(way, func(t *testing.T) { testPeer(t, c, way) })
	}
}

func testPeer(t *testing.T, c *harness.Cluster, way string) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Password: "secret"})
	defer client.Close()
	cmd := exec.Command(way)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("it does not end well with its input: %v", err)
		}
	}()
	s := session{t, in, bufio.NewReader(out)}

	var keys []string
	for slot := uint16(0); slot < slotmap.Slots; slot += 31 {
		keys = append(keys, slotmap.KeyForSlot("peer", slot))
	}
	holds := func(when string, want ...string) {
		t.Helper()
		got := make([]*redis.StringSliceCmd, len(keys))
		_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for i, key := range keys {
				got[i] = pipe.SMembers(t.Context(), key)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, cmd := range got {
			members := cmd.Val()
			slices.Sort(members)
			if !slices.Equal(members, want) {
				t.Fatalf("%s: %s holds %q, want %q", when, keys[i], members, want)
			}
		}
	}

	if ok, text := s.ask(map[string]any{"op": "dance"}); ok || !strings.Contains(text, "dance") {
		t.Errorf("an operation that there is not: got %v, %q", ok, text)
	}
	s.must(map[string]any{"op": "open", "nodes": c.Addrs(), "password": "secret", "keys": keys})
	s.must(map[string]any{"op": "publish", "members": []string{"a", "b", "c"}})
	holds("after the first publish", "a", "b", "c")
	s.must(map[string]any{"op": "publish", "members": []string{"b", "d"}})
	holds("after the second", "b", "d")
	s.must(map[string]any{"op": "apply", "add": []string{"e", "f"}, "remove": []string{"b"}})
	holds("after a delta", "d", "e", "f")
	s.must(map[string]any{"op": "apply", "remove": []string{"e"}})
	holds("after a removal alone", "d", "f")

	// What a server refuses is told.
	if err := client.Set(t.Context(), keys[1], "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if ok, text := s.ask(map[string]any{"op": "apply", "add": []string{"g"}}); ok || !strings.Contains(text, "WRONGTYPE") {
		t.Errorf("a replica of another type: got %v, %q; want WRONGTYPE", ok, text)
	}
	s.must(map[string]any{"op": "publish", "members": []string{}})
	holds("after an empty publish")
	for _, n := range c.Nodes() {
		if size, err := n.Do(t.Context(), "DBSIZE"); err != nil || size != int64(0) {
			t.Errorf("%s: %v keys are left, %v", n, size, err)
		}
	}
}

func TestWithoutNode(t *testing.T) {
	text, err := start(t, "PATH="+pathWith(t, "dirname"))
	if err == nil || text != "node not found: install Node.js 20 or later" {
		t.Errorf("got %q, %v; want one line that says that node is missing", text, err)
	}
}

// pathWith is a folder that holds only the named programs.
func pathWith(t *testing.T, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range programs {
		real, err := exec.LookPath(p)
		if err != nil {
			t.Skip(err)
		}
		if err := os.Symlink(real, dir+"/"+p); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
