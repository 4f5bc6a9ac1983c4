package proxy_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestReadme runs the README's curl lines as they are, but for the address.
func TestReadme(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		if os.Getenv("SHARDKIT_REQUIRE_LIVE") == "1" {
			t.Fatal("SHARDKIT_REQUIRE_LIVE=1, so this is not skipped: no curl: install it with `apt-get install curl`")
		}
		t.Skip("no curl: install it with `apt-get install curl`")
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, nil)
	lines := regexp.MustCompile(`(?m)^curl .*$`).FindAllString(string(text), -1)
	wants := []string{
		`{"key":"session:abc"}`, `{"key":"session:abc","value":{"userId":42}}`, `{"key":"logo"}`,
		`{"values":{"logo":{"$contentType":"image/svg+xml"`, `{"key":"session:abc"}`, `shardkit_`, `"hitRatio":1`, `"status":"ok"`,
	}
	if len(lines) != len(wants) {
		t.Fatalf("%d lines of curl, and %d answers to them", len(lines), len(wants))
	}
	within(t, time.Minute, "all shards serve", func() bool { return s.Health().Status == "ok" })
	for i, line := range lines {
		line = strings.ReplaceAll(line, "http://localhost:7000", s.URL)
		out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "curl", curl+" -sS --fail", 1)).CombinedOutput()
		if err != nil || !strings.Contains(string(out), wants[i]) {
			t.Errorf("%s: got %.300s, %v; want %s", line, out, err, wants[i])
		}
	}
}
