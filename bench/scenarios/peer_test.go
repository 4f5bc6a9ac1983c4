package scenarios

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/bench"
)

// peerMode makes the test binary a peer itself: what it is to do wrong.
const peerMode = "SHARDKIT_TEST_PEER"

// servePeer speaks PEERS.md, or breaks it.
func servePeer(mode string) {
	switch mode {
	case "dies":
		fmt.Fprintln(os.Stderr, "some noise")
		fmt.Fprintln(os.Stderr, "node not found: install it")
		os.Exit(1)
	case "silent":
		os.Exit(3)
	case "garbage":
		fmt.Println("Welcome!")
	}
	ctx := context.Background()
	var client *redis.ClusterClient
	var keys []string
	each := func(write func(pipe redis.Pipeliner, key string)) error {
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, key := range keys {
				write(pipe, key)
			}
			return nil
		})
		return err
	}
	in := bufio.NewReader(os.Stdin)
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if mode == "hangs" && n == 2 {
			time.Sleep(time.Hour)
		}
		var req peerRequest
		if err = json.Unmarshal(line, &req); err == nil {
			switch req.Op {
			case "open":
				client, keys = redis.NewClusterClient(&redis.ClusterOptions{Addrs: req.Nodes}), req.Keys
			case "publish":
				err = each(func(pipe redis.Pipeliner, key string) {
					pipe.Del(ctx, key)
					pipe.SAdd(ctx, key, boxed(req.Members)...)
				})
			case "apply":
				err = each(func(pipe redis.Pipeliner, key string) {
					pipe.SAdd(ctx, key, boxed(req.Add)...)
					pipe.SRem(ctx, key, boxed(req.Remove)...)
				})
			}
		}
		if mode == "lies" && req.Op == "publish" {
			client.Del(ctx, keys[0])
		}
		if mode == "refuses" && n > 0 {
			err = fmt.Errorf("no more")
		}
		reply := peerReply{OK: err == nil}
		if err != nil {
			reply.Error = err.Error()
		}
		text, _ := json.Marshal(reply)
		fmt.Println(string(text))
	}
}

func peerIn(t *testing.T, name, mode string) Peer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Peer{Name: name, Command: []string{"/usr/bin/env", endsAtOnce, peerMode + "=" + mode, self}}
}

func TestPeer(t *testing.T) {
	tg, c := target(t)
	tg.Prefix, tg.Others, tg.Peers = "skbpeer", nil, []Peer{peerIn(t, "other", "works")}
	results := runParts(t, tg, &Options{Duration: 100 * time.Millisecond, Rounds: 5}, "publish-20-strings", "delta")
	noKeys(t, c)
	for i, r := range results {
		commands := 2 * written(tg, []string{"skbpeer", "skbpeerb"}[i])
		if got := variantNames(r); got != "shardkit go-pipelines go-cluster other shardkit'" {
			t.Fatalf("%s: got variants %q", r.Scenario, got)
		}
		v := r.Variant("other")
		if _, counted := v.Counters[bench.AllocsPerOp]; counted {
			t.Errorf("%s: this process's allocations pass for the peer's", r.Scenario)
		}
		if v.Counters[bench.RedisCommands] != commands || r.Comparison("other", "response_p50") == nil {
			t.Errorf("%s: got %v commands of the peer, want %v, and a comparison", r.Scenario, v.Counters[bench.RedisCommands], commands)
		}
		if r.Is(bench.Partial) {
			t.Errorf("%s: %v", r.Scenario, r.Marks)
		}
	}
}

func TestPeersThatAreLeftOut(t *testing.T) {
	tg, c := target(t)
	tg.Others, tg.Peers = nil, []Peer{
		{Name: "nowhere", Command: []string{"/does/not/exist"}},
		peerIn(t, "dying", "dies"), peerIn(t, "quiet", "silent"), peerIn(t, "chatty", "garbage"),
	}
	r := runParts(t, tg, &Options{Duration: 50 * time.Millisecond, Rounds: 5}, "publish-20-strings")[0]
	noKeys(t, c)
	if got := variantNames(r); got != "shardkit go-pipelines go-cluster shardkit'" {
		t.Errorf("got variants %q", got)
	}
	var reasons []string
	for _, m := range r.Marks {
		if m.Kind == bench.Partial {
			reasons = append(reasons, m.Reason)
		}
	}
	for i, want := range []string{"no such file", "node not found: install it", "exit status 3", "Welcome!"} {
		if i >= len(reasons) || !strings.HasPrefix(reasons[i], tg.Peers[i].Name+" is left out") || !strings.Contains(reasons[i], want) {
			t.Errorf("got reasons %q, want the one of %s to say %q", reasons, tg.Peers[i].Name, want)
		}
	}
}

func TestPeersThatFail(t *testing.T) {
	tg, c := target(t)
	part, _ := Select(false, "publish-20-strings")
	for _, tc := range []struct{ mode, want string }{
		{"refuses", "no more"},              // in its set-up
		{"lies", "worth nothing"},           // acknowledged what it did not do
		{"hangs", context.Canceled.Error()}, // until the run is interrupted
	} {
		t.Run(tc.mode, func(t *testing.T) {
			tg.Peers = []Peer{peerIn(t, "other", tc.mode)}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.mode == "hangs" {
				time.AfterFunc(2*time.Second, cancel)
			}
			_, err := Run(ctx, part, tg, &Options{Duration: 50 * time.Millisecond, Rounds: 5})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			noKeys(t, c)
		})
	}
}
