package conformance

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestMain(m *testing.M) {
	code := harnesstest.Main(m)
	leaks := goleak.Find()
	// What a defect leaves running goes on for a second.
	for deadline := time.Now().Add(5 * time.Second); leaks != nil && time.Now().Before(deadline); {
		leaks = goleak.Find()
	}
	if leaks != nil {
		fmt.Fprintln(os.Stderr, leaks)
		code = max(code, 1)
	}
	os.Exit(code)
}
