package conformance

import (
	"runtime/debug"
	"testing"
)

func TestModuleVersion(t *testing.T) {
	module := func(path, version string, replace *debug.Module) *debug.Module {
		return &debug.Module{Path: path, Version: version, Replace: replace}
	}
	const suite, client = repository + "conformance", "example.com/client"
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		name       string
		main       *debug.Module
		dep        *debug.Module
		path, want string
	}{
		{"required by version", module("example.com/mine", "(devel)", nil), module(suite, "v0.1.0", nil), suite, "v0.1.0"},
		{"of the program's tree", module(repository+"cmd/shardkit", "v0.1.0", nil), module(suite, "(devel)", nil), suite, "v0.1.0"},
		{"of the program's commit", module(repository+"cmd/shardkit", "(devel)", nil), module(suite, "(devel)", nil), suite, "(devel) abc+dirty"},
		{"of another tree", module("example.com/mine", "v1.2.3", nil), module(suite, "v0.0.0", module("../conformance", "", nil)), suite, "(devel)"},
		{"another's, replaced", module(repository+"cmd/shardkit", "v0.1.0", nil), module(client, "v1.0.0", module("example.com/fork", "v1.1.0", nil)), client, "v1.1.0"},
		{"another's, from a folder", module(repository+"cmd/shardkit", "v0.1.0", nil), module(client, "v1.0.0", module("../client", "", nil)), client, "(devel)"},
		{"the program itself", module(suite, "v0.1.0", nil), module(client, "v1.0.0", nil), suite, "v0.1.0"},
	} {
		got := moduleIn(&debug.BuildInfo{Main: *c.main, Deps: []*debug.Module{c.dep}, Settings: commit}, c.path)
		if got != (Module{c.path, c.want}) {
			t.Errorf("%s: got %v, want %s", c.name, got, c.want)
		}
	}
}
