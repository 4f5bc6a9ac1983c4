package main

import (
	"bytes"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func runCapture(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestWriteThenCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tags.go")
	code, line, errs := runCapture("-o", file)
	want := file + ": 16384 tags, largest 109757, sha256 8cb2a0e5106dcba8f9866476e3dcaec29baaf37e8b09ac6fb24e65f4825d527c\n"
	if code != exitOK || line != want || errs != "" {
		t.Fatalf("-o: got %d, %q, %q, want 0, %q", code, line, errs, want)
	}
	code, line, errs = runCapture("-check", file)
	if code != exitOK || line != want || errs != "" {
		t.Fatalf("-check: got %d, %q, %q, want 0, %q", code, line, errs, want)
	}

	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	code, printed, _ := runCapture()
	if code != exitOK || printed != string(written) {
		t.Errorf("without flags: got %d and other text than -o writes", code)
	}
	formatted, err := format.Source(written)
	if err != nil {
		t.Fatalf("the output is not Go: %v", err)
	}
	if !bytes.Equal(formatted, written) {
		t.Error("gofmt would change the output")
	}
}

func TestCheckRefuses(t *testing.T) {
	good := string(render(compute()))
	first := "`" + good[len(header):len(header)+width]
	for _, c := range []struct{ name, text, want string }{
		{"another number", strings.Replace(good, first, "`     7", 1), "slot 0 has tag 7 instead of 3560"},
		{"a larger tag of the same slot", strings.Replace(good, first, "`111111", 1), "slot 0 has tag 111111 instead of 3560"},
		{"not a number", strings.Replace(good, first, "`  none", 1), `slot 0: "none" is not a decimal integer`},
		{"one missing", strings.Replace(good, first, "`", 1), "16383 tags instead of 16384"},
		{"another layout", strings.Replace(good, first, "` "+first[1:], 1), "the text differs at byte"},
		{"cut short", good[:len(good)/2], "no table between backquotes"},
		{"empty", "", "no table between backquotes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.text == good {
				t.Fatal("the case changes nothing")
			}
			file := filepath.Join(t.TempDir(), "tags.go")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := runCapture("-check", file)
			if code != exitFailed || out != "" {
				t.Errorf("got %d and %q, want %d and nothing", code, out, exitFailed)
			}
			if !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("got %q, want one line with %q", errs, c.want)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none", "tags.go")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-o", missing}, exitFailed, "tablegen: open "},
		{[]string{"-check", missing}, exitFailed, "tablegen: open "},
		{[]string{"-o", "a", "-check", "b"}, exitUsage, "exclude each other"},
		{[]string{"extra"}, exitUsage, `unexpected argument "extra"`},
		{[]string{"-x"}, exitUsage, "usage: tablegen"},
	} {
		code, out, errs := runCapture(c.args...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: got %d, %q, %q, want %d and one line with %q", c.args, code, out, errs, c.code, c.want)
		}
	}
	if code, out, errs := runCapture("-h"); code != exitOK || !strings.Contains(out, "-check FILE") || errs != "" {
		t.Errorf("-h: got %d, %q, %q, want the usage on standard output", code, out, errs)
	}
}
