package main

import (
	"encoding/json"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuildOf(t *testing.T) {
	got := buildOf(&debug.BuildInfo{
		GoVersion: "go1.26.0",
		Main:      debug.Module{Path: "github.com/shardkit/shardkit/cmd/shardkit", Version: "v0.1.0"},
		Deps: []*debug.Module{
			{Path: "github.com/shardkit/shardkit/replset", Version: "v0.0.0", Replace: &debug.Module{Path: "../../replset"}},
			{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/b", Version: "v1.2.0"}},
			{Path: "example.com/c", Version: "v1.3.0"},
		},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}, {Key: "vcs.time", Value: "2026-11-30T00:00:00Z"}},
	})
	want := build{
		Version: "v0.1.0", Revision: "abc", Time: "2026-11-30T00:00:00Z", Modified: true, Go: "go1.26.0",
		Modules: map[string]string{"github.com/shardkit/shardkit/replset": "(devel)", "example.com/a": "v1.2.0", "example.com/c": "v1.3.0"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestVersion(t *testing.T) {
	got := shardkit(t, t.Context(), "", "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(got.out), &b); err != nil || got.code != exitOK || b.Go != runtime.Version() {
		t.Errorf("got %+v, %v, want exit 0 and JSON with %s", got, err, runtime.Version())
	}
	const client = "github.com/redis/go-redis/v9"
	if b.Modules[client] == "" {
		t.Errorf("no version of %s: %v", client, b.Modules)
	}
	text := shardkit(t, t.Context(), "", "version")
	if line := strings.Fields(text.out); text.code != exitOK || len(line) < 4 || line[0] != "shardkit" || !strings.Contains(text.out, b.Modules[client]) {
		t.Errorf("got %+v, want the same as lines", text)
	}
}
