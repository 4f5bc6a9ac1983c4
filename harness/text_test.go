package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestReadReply(t *testing.T) {
	for wire, want := range map[string]any{
		"+OK\r\n":                           "OK",
		"-ERR no\r\n":                       ReplyError("ERR no"),
		":-7\r\n":                           int64(-7),
		"$5\r\na\r\nbc\r\n":                 "a\r\nbc",
		"$0\r\n\r\n":                        "",
		"$-1\r\n":                           nil,
		"*-1\r\n":                           nil,
		"*0\r\n":                            []any{},
		"*3\r\n:1\r\n*1\r\n$-1\r\n-ERR\r\n": []any{int64(1), []any{nil}, ReplyError("ERR")},
	} {
		got, err := readReply(bufio.NewReader(strings.NewReader(wire)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("readReply(%q) = %#v, %v, want %#v", wire, got, err, want)
		}
	}
	for _, wire := range []string{"", "+OK", "+OK\n", "?\r\n", ":x\r\n", "$-2\r\n", "$9\r\nabc\r\n", "*2\r\n:1\r\n", "HTTP/1.1 400 Bad Request\r\n"} {
		if got, err := readReply(bufio.NewReader(strings.NewReader(wire))); err == nil {
			t.Errorf("readReply(%q) = %#v, want an error", wire, got)
		}
	}
}

func TestParseMembers(t *testing.T) {
	members, err := parseMembers(`07c3 127.0.0.1:30004@31004,host slave e7d1 0 1426238317239 4 connected
67ed 127.0.0.1:30002@31002 master - 0 1426238316232 2 connected 5461-10922
6ec2 ::1:30005@31005 master,fail? - 0 1426238316232 5 disconnected 11000
e7d1 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5460 [93-<-67ed] [77->-67ed] 16383
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []member{
		{"07c3", "127.0.0.1:30004", []string{"slave"}, "e7d1", 4, nil},
		{"67ed", "127.0.0.1:30002", []string{"master"}, "", 2, [][2]int{{5461, 10922}}},
		{"6ec2", "[::1]:30005", []string{"master", "fail?"}, "", 5, [][2]int{{11000, 11000}}},
		{"e7d1", "127.0.0.1:30001", []string{"myself", "master"}, "", 1, [][2]int{{0, 5460}, {16383, 16383}}},
	}
	if !reflect.DeepEqual(members, want) {
		t.Errorf("got  %v\nwant %v", members, want)
	}
	for _, text := range []string{
		"07c3 127.0.0.1:30004@31004 slave\n",
		"07c3 127.0.0.1:30004@31004 master - 0 0 x connected\n",
		"07c3 127.0.0.1:30004@31004 master - 0 0 1 connected 5-x\n",
		"07c3 127.0.0.1:30004@31004 master - 0 0 1 connected 0-16384\n",
		"07c3 127.0.0.1:30004@31004 master - 0 0 1 connected 9-8\n",
	} {
		if got, err := parseMembers(text); err == nil {
			t.Errorf("parseMembers(%q) = %v, want an error", text, got)
		}
	}
}

func TestParseVersion(t *testing.T) {
	for info, want := range map[string]string{
		"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n":                     "redis 7.0.15",
		"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n": "valkey 8.1.1",
		"redis_version:6.3.4\r\nserver_name:other\r\n":                                      "other 6.3.4",
	} {
		got, err := parseVersion(info)
		if err != nil || got.String() != want {
			t.Errorf("parseVersion(%q) = %v, %v, want %s", info, got, err, want)
		}
	}
	for line, want := range map[string]string{
		"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a948f0\n":                   "redis 7.0.15",
		"warning: locale\nValkey server v=8.1.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=384b3c0d511f998a\n": "valkey 8.1.1",
	} {
		got, err := ParseVersion(line)
		if err != nil || got.String() != want {
			t.Errorf("ParseVersion(%q) = %v, %v, want %s", line, got, err, want)
		}
	}
	if v, err := ParseVersion("redis-cli 7.0.15\n"); err == nil {
		t.Errorf("ParseVersion of a client = %v, want an error", v)
	}
	if v, err := parseVersion("# Server\r\n"); err == nil {
		t.Errorf("parseVersion of nothing = %v, want an error", v)
	}
	v := Version{"redis", "7.0.15"}
	for _, tc := range []struct {
		major, minor int
		want         bool
	}{{6, 2, true}, {7, 0, true}, {7, 1, false}, {8, 0, false}} {
		if got := v.AtLeast(tc.major, tc.minor); got != tc.want {
			t.Errorf("%v.AtLeast(%d, %d) = %v, want %v", v, tc.major, tc.minor, got, tc.want)
		}
	}
}

func TestTimelineReads(t *testing.T) {
	var log strings.Builder
	tl := newTimeline(func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) })
	tl.add(tl.start, "", "ready", 2046700*time.Microsecond)
	tl.add(tl.start.Add(2500*time.Millisecond), "node-2", "kill", 812*time.Microsecond)
	tl.add(tl.start.Add(12*time.Second), "a-long-name", "seen", 0)
	want := `    0.000s  all          2.0467s  ready
    2.500s  node-2       812µs    kill
   12.000s  a-long-name  -        seen
`
	var b bytes.Buffer
	n, err := tl.WriteTo(&b)
	if b.String() != want || n != int64(b.Len()) || err != nil {
		t.Errorf("WriteTo = %d, %v:\n%s\nwant\n%s", n, err, b.String(), want)
	}
	if tl.String() != want {
		t.Errorf("String() differs from WriteTo:\n%s", tl)
	}
	tl.mute()
	tl.Note("node-2", "after the end")
	if want := "harness: all: ready (2.0467s)\nharness: node-2: kill (812µs)\nharness: a-long-name: seen\n"; log.String() != want {
		t.Errorf("the log is %q, want %q", log.String(), want)
	}
	if got := tl.Events(); len(got) != 4 || got[3].What != "after the end" {
		t.Errorf("Events() = %v, want all four", got)
	}
}

func TestFreePorts(t *testing.T) {
	ports, err := freePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if p < firstPort || p >= lastPort || seen[p] || seen[p+busOffset] {
			t.Errorf("port %d is out of range or drawn twice in %v", p, ports)
		}
		seen[p], seen[p+busOffset] = true, true
	}
	if _, err := freePorts(lastPort - firstPort + 1); err == nil {
		t.Error("there are more ports than there are")
	}
}

func TestPollSaysWhatWasMissing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	missing, late := errors.New("still missing"), errors.New("cut off")
	err := poll(ctx, func() error {
		if calls++; calls == 1 {
			return missing
		}
		cancel()
		return late
	})
	if !errors.Is(err, missing) || errors.Is(err, late) || !errors.Is(err, ctx.Err()) {
		t.Errorf("the error is %v, want what was missing before the end", err)
	}
}
