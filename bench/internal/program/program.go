// Package program runs a program that answers lines of JSON with lines of JSON, and that does not outlive this one.
package program

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Program is one that was started. It is asked for one thing at a time.
type Program struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan []byte // closed when it has ended
	stderr tail
	exit   error // once lines is closed
}

// Start starts the command, with its standard input and output taken. The caller must Close it.
//
// On Linux the kernel asks it to end (SIGTERM) should this process be killed; elsewhere the end of its input tells it.
func Start(cmd *exec.Cmd) (*Program, error) {
	p := &Program{cmd: cmd, lines: make(chan []byte)}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, cmd.Stderr = in, &p.stderr
	bind(cmd)
	started := make(chan error)
	go p.run(out, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Program) run(out io.Reader, started chan<- error) {
	// What bind asks for comes when the thread ends that started the program, which the runtime does as it likes.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	defer close(p.lines)
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		p.lines <- line
	}
	p.exit = p.cmd.Wait()
}

// Ask sends a request and waits for its reply. After an error there is nothing to do but Close: the reply may still come.
func (p *Program) Ask(ctx context.Context, request, reply any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	// One that hangs before it has read the request holds up the writing, until Close.
	written := make(chan error, 1)
	go func() {
		_, err := p.in.Write(append(line, '\n'))
		written <- err
	}()
	return p.next(ctx, reply, written)
}

// Next waits for a reply, which may come without a request.
func (p *Program) Next(ctx context.Context, reply any) error { return p.next(ctx, reply, nil) }

func (p *Program) next(ctx context.Context, reply any, written <-chan error) error {
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return p.ended()
			}
			if err := json.Unmarshal(line, reply); err != nil {
				p.kill()
				return fmt.Errorf("%s answers %.80q, which is no reply: %w", p.cmd.Path, bytes.TrimSpace(line), err)
			}
			return nil
		case err := <-written:
			if err != nil {
				return p.ended()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the program: the end of its input tells it to, and when ctx ends it is killed. The error says how it ended,
// if not well.
func (p *Program) Close(ctx context.Context) error {
	_ = p.in.Close()
	unhook := context.AfterFunc(ctx, p.kill)
	for range p.lines { // to a request that nobody waits for any more
	}
	switch killed := !unhook(); {
	case p.exit == nil:
		return nil
	case killed:
		return fmt.Errorf("%s did not end, and was killed", p.cmd.Path)
	}
	return fmt.Errorf("%s: %w: %s", p.cmd.Path, p.exit, p.stderr.last())
}

func (p *Program) kill() { _ = p.cmd.Process.Kill() }

// ended is the error of a program that takes no more input, or gives no more output. It is given a while to end.
func (p *Program) ended() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = p.Close(ctx)
	text := p.stderr.last()
	if text == "" {
		text = p.cmd.ProcessState.String()
	}
	return fmt.Errorf("%s has ended: %s", p.cmd.Path, text)
}

const grace = 3 * time.Second

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	t.b = t.b[max(0, len(t.b)-4096):]
	return len(b), nil
}

// last is the last line that is not empty, in which programs say what is wrong.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := bytes.TrimSpace(t.b)
	return strings.TrimSpace(string(b[bytes.LastIndexByte(b, '\n')+1:]))
}
