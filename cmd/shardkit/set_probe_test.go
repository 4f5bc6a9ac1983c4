package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestSetProbe(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	rows := func(out, row string) int {
		return len(regexp.MustCompile(`(?m)^127\.0\.0\.1:\d+ +5,46\d +`+row+`$`).FindAllString(out, -1))
	}
	if got := setOf(t, c, "active")("", "probe"); got.code != exitOK || rows(got.out, "node script  yes") != 3 || strings.Contains(got.out, ":  ") {
		t.Errorf("a user who may do all: got %+v, want three nodes by node script, by RESTORE", got)
	}
	users := map[string]string{
		"norestore":  "+@all -restore",
		"scriptless": "+@all -@scripting",
	}
	t.Setenv("SHARDKIT_PASSWORD", "secret")
	for user, rules := range users {
		for _, n := range c.Nodes() {
			if _, err := n.Do(t.Context(), append([]string{"ACL", "SETUSER", user, "on", ">secret", "~*", "&*"}, strings.Fields(rules)...)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := setOf(t, c, "active")("", "probe", "--user", "norestore"); got.code != exitOK || rows(got.out, "node script  no") != 3 {
		t.Errorf("a user without RESTORE: got %+v", got)
	}
	if got := setOf(t, c, "active")("", "probe", "--user", "scriptless"); got.code != exitOK || rows(got.out, "transaction  no") != 3 || !strings.Contains(got.out, "\ntransaction: scripts are refused") {
		t.Errorf("a user without scripts: got %+v, want transactions, and what they do not guarantee", got)
	}

	if err := c.Nodes()[2].Kill(); err != nil {
		t.Fatal(err)
	}
	got := setOf(t, c, "active")("", "probe", "--user", "norestore", "--json")
	var told struct {
		Nodes []struct{ Addr, Way, Error string }
	}
	if err := json.Unmarshal([]byte(got.out), &told); err != nil || len(told.Nodes) != 3 {
		t.Fatalf("got %+v, %v; want three nodes", got, err)
	}
	for _, n := range told.Nodes {
		killed := n.Addr == c.Nodes()[2].Addr()
		if killed != (n.Error != "") || killed == (n.Way != "") {
			t.Errorf("got %+v, killed is %v", n, killed)
		}
	}
	if got.code != exitFailed || !strings.Contains(got.err, c.Nodes()[2].Addr()) {
		t.Errorf("a node does not answer: got %+v, want exit 1", got)
	}
	for _, n := range c.Nodes()[:2] {
		if keys, err := n.Do(t.Context(), "DBSIZE"); err != nil || keys != int64(0) {
			t.Errorf("a probe left %v keys, %v", keys, err)
		}
	}
}
