package soak

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Main()
	flag.Parse()
	flag.Set("test.parallel", "8") // they wait for most of their time
	goleak.VerifyTestMain(m)
}
