package harnesstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

// shared servers are started by the first test that asks, and at most once: a second try would fail as the first did.
var (
	sharedCluster = lazily(func() (*harness.Cluster, error) {
		return harness.StartCluster(context.Background(), harness.Options{})
	})
	sharedShards = lazily(func() (*harness.Shards, error) {
		return harness.StartShards(context.Background(), harness.Options{})
	})
)

// SharedCluster returns the one cluster that the tests of this binary share, with the zero Options. A cluster takes 2 s to
// start, so tests that break nothing should share one, and prefix their keys with something of their own.
//
// Main closes it. In a binary without Main it ends with the process.
func SharedCluster(t testing.TB) *harness.Cluster {
	t.Helper()
	c, err := sharedCluster.get()
	if err != nil {
		Skip(t, err)
	}
	return c
}

// SharedShards returns the three shards that the tests of this binary share. See SharedCluster.
func SharedShards(t testing.TB) *harness.Shards {
	t.Helper()
	s, err := sharedShards.get()
	if err != nil {
		Skip(t, err)
	}
	return s
}

// Main runs the tests and closes the shared servers. Then it calls each of last until
// that returns nil, for ten seconds: clients end their own goroutines some time after
// they are closed. It returns the code to exit with:
//
//	func TestMain(m *testing.M) { os.Exit(harnesstest.Main(m, func() error { return goleak.Find() })) }
func Main(m *testing.M, last ...func() error) int {
	code := m.Run()
	errs := []error{sharedCluster.close(), sharedShards.close()}
	for _, f := range last {
		err := f()
		for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
			err = f()
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

type lazy[T interface{ Close() error }] struct {
	start func() (T, error)

	once  sync.Once
	value T
	err   error
	ready bool
}

func lazily[T interface{ Close() error }](start func() (T, error)) *lazy[T] {
	return &lazy[T]{start: start}
}

func (l *lazy[T]) get() (T, error) {
	l.once.Do(func() {
		l.value, l.err = l.start()
		l.ready = l.err == nil
	})
	return l.value, l.err
}

// close closes what get started, if it did.
func (l *lazy[T]) close() error {
	l.once.Do(func() { l.err = errors.New("harnesstest: the tests are over") })
	if !l.ready {
		return nil
	}
	return l.value.Close()
}
