package harness

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAppendMessage(t *testing.T) {
	long := strings.Repeat("x", 100)
	whole := []string{
		"+OK\r\n", "-ERR no\r\n", ":1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(12345678901234567890\r\n",
		"$-1\r\n", "$0\r\n\r\n", "$5\r\na\r\nbc\r\n", "!9\r\nERR wrong\r\n", "=7\r\ntxt:abc\r\n",
		"*-1\r\n", "*0\r\n", "*2\r\n*1\r\n:1\r\n$1\r\nx\r\n", "~1\r\n+a\r\n",
		">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n", "%1\r\n+k\r\n*2\r\n:1\r\n:2\r\n", "|1\r\n+k\r\n+v\r\n:7\r\n",
		"+" + long + "\r\n", "$100\r\n" + long + "\r\n",
	}
	// One after another from a small buffer: each must end where the next begins.
	r := bufio.NewReaderSize(strings.NewReader(strings.Join(whole, "")), 16)
	for _, want := range whole {
		got, err := appendMessage([]byte("before "), r)
		if err != nil || string(got) != "before "+want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := appendMessage(nil, r); err != io.EOF {
		t.Errorf("at the end the error is %v, want EOF", err)
	}

	// What cannot be read as RESP is handed on, not lost.
	for wire, notRESP := range map[string]bool{
		"$EOF:0123456789\r\n": true, "$x\r\n": true, "\n": true, "?2\r\n": true, "$\r\n": true, "*99999999999999999999\r\n": true,
		"$9\r\nabc": false, "+OK": false, "*2\r\n:1\r\n": false,
	} {
		got, err := appendMessage(nil, bufio.NewReaderSize(strings.NewReader(wire), 16))
		if err == nil || errors.Is(err, errNotRESP) != notRESP || string(got) != wire {
			t.Errorf("appendMessage(%q) = %q, %v, want all of it and an error", wire, got, err)
		}
	}
}
