package conformance

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestMain(m *testing.M) {
	code := harnesstest.Main(m)
	if leaks := goleak.Find(); leaks != nil {
		fmt.Fprintln(os.Stderr, leaks)
		code = max(code, 1)
	}
	os.Exit(code)
}
