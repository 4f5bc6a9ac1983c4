package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/shardkit/shardkit/proxy"
)

// A cache over HTTP, on shards in the process. A program has goredis.NewShard(client) for each of its servers.
func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	p, err := proxy.New(proxy.Embedded(ctx, 3), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	ask := func(method, path, body string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r) // or p.Serve(ctx, listener), with time-outs and a graceful end
		answer, _ := io.ReadAll(w.Result().Body)
		fmt.Println(method, path, w.Code, strings.TrimSpace(string(answer)))
	}
	ask(http.MethodPut, "/cache/greeting", `{"value": "hello", "ttlSeconds": 60}`)
	ask(http.MethodGet, "/cache/greeting", "")
	ask(http.MethodDelete, "/cache/greeting", "")
	// Output:
	// PUT /cache/greeting 201 {"key":"greeting"}
	// GET /cache/greeting 200 {"key":"greeting","value":"hello"}
	// DELETE /cache/greeting 200 {"key":"greeting"}
}
