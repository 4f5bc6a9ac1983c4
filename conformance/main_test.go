package conformance

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestMain(m *testing.M) {
	os.Exit(harnesstest.Main(m, func() error { return goleak.Find() }))
}
