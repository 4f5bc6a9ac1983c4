package main

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
)

func TestMain(m *testing.M) { os.Exit(harnesstest.Main(m)) }

func TestFailsClosed(t *testing.T) {
	cluster := harnesstest.SharedCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer client.Close()
	backend := goredis.New(client)
	handler, err := visible(backend)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, code int, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/visible/42", nil))
		if w.Code != code || !strings.Contains(w.Body.String(), body) || code != 200 && strings.Contains(w.Body.String(), "mallory") {
			t.Errorf("%s: got %d %s, want %d %s", when, w.Code, w.Body, code, body)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	must(client.SAdd(ctx, "followers:{42}", "ann", "ben", "mallory").Err())
	expect("never published", 503, "not known")

	list, err := replset.New(backend, "blocked", nil)
	must(err)
	must(list.Publish(ctx, []string{"mallory"}))
	expect("published", 200, `["ann","ben"]`)

	must(client.Del(ctx, list.KeyFor("followers:{42}")).Err())
	expect("the replica was deleted", 503, "not known")

	must(client.SAdd(ctx, list.KeyFor("followers:{42}"), "someone", "else").Err())
	expect("the replica was changed", 503, "not known")

	_, err = list.Reconcile(ctx, nil)
	must(err)
	expect("repaired", 200, `["ann","ben"]`)

	must(list.Publish(ctx, nil))
	expect("nobody is blocked", 200, `["ann","ben","mallory"]`)

	must(list.Clear(ctx))
	expect("withdrawn", 503, "not known")
}
