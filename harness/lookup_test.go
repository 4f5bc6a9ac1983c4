package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hideServers makes this machine look as if it had no server, to this test.
func hideServers(t *testing.T) {
	places := usualPlaces
	t.Cleanup(func() { usualPlaces = places })
	usualPlaces = []string{"/nowhere/bin"}
	t.Setenv("PATH", t.TempDir())
	for _, env := range []string{"SHARDKIT_SERVER", "SHARDKIT_CLUSTER", "SHARDKIT_SHARDS"} {
		t.Setenv(env, "")
	}
}

func TestNoServer(t *testing.T) {
	hideServers(t)
	_, err := StartShards(context.Background(), Options{})
	var none *NoServerError
	if !errors.Is(err, ErrNoServer) || !errors.As(err, &none) {
		t.Fatalf("the error is %v, want a *NoServerError that is ErrNoServer", err)
	}
	for _, want := range []string{"harness: ", "redis-server in PATH", "valkey-server in PATH", "/nowhere/bin", installCommand(), "SHARDKIT_SERVER", "SHARDKIT_SHARDS"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want %q in it", err, want)
		}
	}
	if _, err := StartCluster(context.Background(), Options{}); !errors.Is(err, ErrNoServer) {
		t.Errorf("StartCluster: the error is %v, want ErrNoServer", err)
	}
}

func TestServerIsFound(t *testing.T) {
	hideServers(t)
	dir := t.TempDir()
	valkey, redis := filepath.Join(dir, "valkey-server"), filepath.Join(dir, "redis-server")
	put := func(path string) {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := func(named, want string) {
		t.Helper()
		if got, err := findServer(named); got != want {
			t.Errorf("findServer(%q) = %q, %v, want %q", named, got, err, want)
		}
	}
	put(valkey)
	usualPlaces = []string{dir}
	want("", valkey)
	put(redis)
	want("", redis)
	t.Setenv("PATH", dir)
	want("", redis)
	want("valkey-server", valkey)
	t.Setenv("SHARDKIT_SERVER", valkey)
	want("", valkey)
	want(redis, redis)

	// One that is named and missing is no reason to take another.
	for _, named := range []string{"/nowhere/redis-server", "no-such-server"} {
		if _, err := findServer(named); err == nil || errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "Options.Server") {
			t.Errorf("findServer(%q): the error is %v, want one that names the option", named, err)
		}
	}
	t.Setenv("SHARDKIT_SERVER", "/nowhere/redis-server")
	if _, err := findServer(""); err == nil || errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "SHARDKIT_SERVER") {
		t.Errorf("the error is %v, want one that names SHARDKIT_SERVER", err)
	}
}

func TestInstallCommand(t *testing.T) {
	for _, tc := range []struct {
		goos, release string
		root          bool
		want          string
	}{
		{"linux", "ID=debian\n", true, "apt-get install -y redis-server"},
		{"linux", "ID=debian\n", false, "sudo apt-get install -y redis-server"},
		{"linux", "NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", true, "apt-get install -y redis-server"},
		{"linux", "ID=alpine\n", true, "apk add redis"},
		{"linux", "ID=fedora\n", true, "dnf install -y valkey"},
		{"linux", "ID_LIKE=\"rhel centos fedora\"\nID=\"rocky\"\n", true, "dnf install -y redis"},
		{"linux", "ID=arch\n", true, "pacman -S --noconfirm valkey"},
		{"linux", "ID=opensuse-leap\nID_LIKE='suse opensuse'\n", true, "zypper install -y redis"},
		{"darwin", "", false, "brew install redis"},
		{"freebsd", "", true, "pkg install -y redis"},
		{"linux", "ID=something\n", true, "your package manager to install redis-server or valkey-server"},
		{"linux", "", true, "your package manager to install redis-server or valkey-server"},
	} {
		if got := installCommandFor(tc.goos, tc.release, tc.root); got != tc.want {
			t.Errorf("installCommandFor(%q, %q, %v) = %q, want %q", tc.goos, tc.release, tc.root, got, tc.want)
		}
	}
}

// Providers are asked in turn, as long as the one before has no server.
func TestProvidersInTurn(t *testing.T) {
	hideServers(t)
	none := providerFunc(func() error { return fmt.Errorf("no docker here: %w", ErrNoServer) })
	broken := providerFunc(func() error { return errors.New("the docker daemon hangs") })
	_, err := StartShards(context.Background(), Options{Providers: []Provider{Processes(), none}})
	if !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "redis-server in PATH") || !strings.Contains(err.Error(), "no docker here") {
		t.Errorf("the error is %v, want what each provider looked for", err)
	}
	_, err = StartShards(context.Background(), Options{Providers: []Provider{broken, none}})
	if errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "hangs") {
		t.Errorf("the error is %v, want that of the provider that is broken", err)
	}
}

type providerFunc func() error

func (f providerFunc) Open(context.Context, Options) (Launcher, error) { return nil, f() }
