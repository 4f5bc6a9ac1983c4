package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// mode makes this test's binary a program itself: what it is to do.
const mode = "SHARDKIT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if m := os.Getenv(mode); m != "" {
		be(m)
		return
	}
	goleak.VerifyTestMain(m)
}

func be(mode string) {
	in := bufio.NewReader(os.Stdin)
	switch mode {
	case "dies":
		fmt.Fprintln(os.Stderr, "some noise")
		fmt.Fprintln(os.Stderr, "node not found: install it")
		os.Exit(1)
	case "silent":
		os.Exit(3)
	case "deaf": // takes no input, and stays
		os.Stdin.Close()
		fmt.Println("{}")
		select {}
	case "greets":
		fmt.Println("Welcome!")
		select {}
	case "hangs":
		select {}
	case "starts one that hangs", "starts one that works":
		// The tests' end of this file is closed when nobody has it any more.
		cmd := self(strings.TrimPrefix(mode, "starts one that "))
		cmd.ExtraFiles = []*os.File{os.NewFile(3, "held")}
		if _, err := Start(cmd); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("{}")
		select {}
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		fmt.Print(line)
	}
	if mode == "ends badly" {
		fmt.Fprintln(os.Stderr, "the last write was lost")
		os.Exit(2)
	}
}

func self(as string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	// With the race detector a process waits for a second before it ends.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", mode+"="+as)
	return cmd
}

func start(t *testing.T, as string) *Program {
	t.Helper()
	p, err := Start(self(as))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Close(ctx)
	})
	return p
}

func soon(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAsk(t *testing.T) {
	p := start(t, "works")
	long := strings.Repeat("long", 1<<20)
	for _, want := range []string{"one", "two", long} {
		var got string
		if err := p.Ask(soon(t, time.Minute), want, &got); err != nil || got != want {
			t.Fatalf("got %.80q, %v, want %.80q back", got, err, want)
		}
	}
	if err := p.Close(soon(t, time.Minute)); err != nil {
		t.Errorf("in the end: %v", err)
	}
	if err := p.Ask(soon(t, time.Minute), "more", new(string)); err == nil || !strings.Contains(err.Error(), "has ended: exit status 0") {
		t.Errorf("after its end: got %v", err)
	}
}

func TestFailures(t *testing.T) {
	for _, tc := range []struct{ mode, want string }{
		{"dies", "has ended: node not found: install it"},
		{"silent", "has ended: exit status 3"},
		{"deaf", "has ended: signal: killed"},
		{"greets", `answers "Welcome!", which is no reply`},
		{"hangs", context.DeadlineExceeded.Error()},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			p := start(t, tc.mode)
			var err error
			if tc.mode == "deaf" { // its input is closed, once it says so
				err = p.Next(soon(t, time.Minute), &struct{}{})
			}
			if err == nil {
				wait := time.Minute
				if tc.mode == "hangs" {
					wait = 50 * time.Millisecond
				}
				// More than a pipe holds.
				err = p.Ask(soon(t, wait), strings.Repeat("long", 1<<20), new(string))
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := Start(exec.Command("/does/not/exist")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such program: got %v", err)
	}
	if err := start(t, "works").Ask(t.Context(), func() {}, nil); err == nil {
		t.Error("a request that is no JSON was sent")
	}
}

func TestClose(t *testing.T) {
	for _, tc := range []struct{ mode, want string }{
		{"works", ""},
		{"ends badly", "exit status 2: the last write was lost"},
		{"hangs", "did not end, and was killed"},
	} {
		wait := time.Minute
		if tc.mode == "hangs" {
			wait = 50 * time.Millisecond
		}
		err := start(t, tc.mode).Close(soon(t, wait))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.mode, err, tc.want)
		}
	}
}

// Whoever kills the one that started a program ends the program too, also where it looks at nothing any more.
func TestNoneIsLeftBehind(t *testing.T) {
	modes := []string{"works"}
	if bound {
		modes = append(modes, "hangs")
	}
	for _, mode := range modes {
		held, theirs, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		cmd := self("starts one that " + mode)
		cmd.ExtraFiles = []*os.File{theirs}
		p, err := Start(cmd)
		theirs.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Next(soon(t, time.Minute), &struct{}{}); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		held.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := held.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: got %v from a file that the program's end closes, want its end", mode, err)
		}
		_ = p.Close(soon(t, time.Minute))
	}
}
