// Command figures writes the figures of the README from the report beside the docs, so that nobody types them.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/shardkit/shardkit/bench"
)

const (
	root   = "../../../.." // from this folder
	begin  = "<!-- figures: from docs/bench/report.json by make generate -->\n"
	end    = "<!-- end of figures -->\n"
	client = "github.com/redis/go-redis/v9"
)

// shown are the parts in the README, and what each is about.
var shown = []struct{ part, title string }{
	{"publish-200-strings", "replace 200 strings in all 16384 slots"},
	{"delta", "add 6, remove 4"},
	{"intersect-100", "intersect with a sharded set of 100"},
	{"count-5000", "count what is shared with a set of 5000"},
	{"cache-get", "read 1 kB through the cache"},
	{"cache-set", "write 1 kB through the cache"},
}

func main() {
	if err := generate(root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(root string) error {
	file := filepath.Join(root, "README.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	now, err := replace(string(text), root)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(now), fs.FileMode(0o644))
}

// replace puts the figures of the report between the README's markers.
func replace(readme, root string) (string, error) {
	r, err := bench.ReadReport(filepath.Join(root, "docs/bench/report.json"))
	if err != nil {
		return "", err
	}
	before, rest, ok := strings.Cut(readme, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("README.md does not have the lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	block, err := figures(r)
	return before + begin + block + end + after, err
}

func figures(r *bench.Report) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s; go-redis %s. Medians of one run; ratios hold elsewhere, microseconds do not. "+
		"`bare` is the one command or client alone, `go-pipelines` the same writes by hand, `go-cluster` by pipelines of the cluster client, `fetch-both` two SMEMBERS, `process` what is in memory%s.\n\n", r.Where(), r.Modules[client], others(r))
	b.WriteString("| | way | median | ratio (99 % interval) | commands | bytes sent |\n|---|---|--:|---|--:|--:|\n")
	for _, s := range shown {
		res := find(r, s.part)
		if res == nil || len(res.Marks) > 0 {
			return "", fmt.Errorf("the report has no %s that is whole and valid: measure again", s.part)
		}
		title := s.title
		for _, v := range res.Variants {
			if v.Twin {
				continue
			}
			ratio := "1"
			if c := res.Comparison(v.Name, "response_p50"); c != nil {
				ratio = fmt.Sprintf("%.3g (%.3g to %.3g)", c.Ratio, c.Low, c.High)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", title, v.Name, short(v.Response.P50), ratio,
				count(v.Counters[bench.RedisCommands]), count(v.Counters[bench.RedisBytesIn]))
			title = ""
		}
	}
	b.WriteString("\n[docs/bench](docs/bench/README.md) has the whole report.\n\n")
	return b.String(), nil
}

// others says what the names of other clients' variants mean, where there are any.
func others(r *bench.Report) string {
	const rueidis = "rueidis"
	for _, res := range r.Results {
		for _, v := range res.Variants {
			if strings.HasSuffix(v.Name, "-"+rueidis) {
				return fmt.Sprintf(", `-%s` the same over %[1]s %s", rueidis, r.Modules["github.com/redis/"+rueidis])
			}
		}
	}
	return ""
}

func find(r *bench.Report, part string) *bench.Result {
	for _, res := range r.Results {
		if res.Scenario == part {
			return res
		}
	}
	return nil
}

// short keeps three digits.
func short(d time.Duration) string {
	unit, name := time.Microsecond, "µs"
	switch {
	case d >= time.Second:
		unit, name = time.Second, "s"
	case d >= time.Millisecond:
		unit, name = time.Millisecond, "ms"
	}
	return fmt.Sprintf("%.3g %s", float64(d)/float64(unit), name)
}

func count(n float64) string {
	if n >= 1000 {
		s := fmt.Sprintf("%.0f", n)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	}
	return fmt.Sprintf("%.3g", n)
}
