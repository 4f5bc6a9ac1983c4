package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Remote is a variant whose operations are done and timed by another process, which calls Serve. Each Setup starts one
// from the command, with its standard input and output. It must serve that scenario, under the same Doc: else what is
// compared is not the same.
func Remote(name, scenario, doc string, command func() *exec.Cmd) Variant {
	return Variant{Name: name, Setup: func(ctx context.Context, _ int) (*Subject, error) {
		p, err := startProcess(ctx, command())
		if err != nil {
			return nil, err
		}
		if h := p.hello; h.Protocol != protocol || h.Scenario != scenario || h.Doc != doc {
			return nil, errors.Join(fmt.Errorf("%s measures %q (%s; protocol %d), not %q (%s; protocol %d)",
				p.cmd.Path, h.Scenario, h.Doc, h.Protocol, scenario, doc, protocol), p.end(ctx))
		}
		return &Subject{Batch: p.batch, Counters: p, TearDown: p.end}, nil
	}}
}

// process is a program that serves.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies chan json.RawMessage // closed at the end of the output
	stderr  tail
	hello   hello
	exited  chan struct{}
	exit    error
}

func startProcess(ctx context.Context, cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, replies: make(chan json.RawMessage), exited: make(chan struct{})}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, cmd.Stderr = in, &p.stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(out)
	if err := p.next(ctx, &p.hello); err != nil {
		return nil, errors.Join(err, p.end(ctx))
	}
	return p, nil
}

func (p *process) read(out io.Reader) {
	for d := json.NewDecoder(out); ; {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			if !errors.Is(err, io.EOF) { // it is not one of ours
				_ = p.cmd.Process.Kill()
			}
			break
		}
		p.replies <- raw
	}
	close(p.replies)
	p.exit = p.cmd.Wait()
	close(p.exited)
}

func (p *process) next(ctx context.Context, into any) error {
	select {
	case raw, ok := <-p.replies:
		if !ok {
			return p.gone()
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("%s answers what is no reply: %w", p.cmd.Path, err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *process) gone() error {
	p.in.Close()
	kill := time.AfterFunc(tearDownTime, func() { _ = p.cmd.Process.Kill() })
	<-p.exited
	kill.Stop()
	text := p.stderr.String()
	if text == "" && p.exit != nil {
		text = p.exit.Error()
	}
	return fmt.Errorf("%s has ended: %s", p.cmd.Path, text)
}

func (p *process) ask(ctx context.Context, req request) (r reply, err error) {
	b, err := json.Marshal(req)
	if err != nil {
		return r, err
	}
	if _, err = p.in.Write(append(b, '\n')); err != nil {
		return r, p.gone()
	}
	if err = p.next(ctx, &r); err == nil && r.Fatal != "" {
		err = errors.New(r.Fatal)
	}
	return r, err
}

func (p *process) batch(ctx context.Context, ops int) (*Batch, error) {
	r, err := p.ask(ctx, request{Do: "batch", Ops: ops})
	if err != nil {
		return nil, err
	}
	b := &Batch{Took: r.Took}
	for _, text := range r.Errors {
		b.Errs = append(b.Errs, errors.New(text))
	}
	return b, nil
}

// Counters are the process's own.
func (p *process) Counters(ctx context.Context) (map[string]float64, error) {
	r, err := p.ask(ctx, request{Do: "counters"})
	return r.Counters, err
}

// end closes the process's input, upon which it cleans up and ends. One that does not is killed when ctx ends.
func (p *process) end(ctx context.Context) error {
	p.in.Close()
	for {
		select {
		case _, ok := <-p.replies: // to a request that nobody waits for any more
			if !ok {
				<-p.exited
				return p.failure()
			}
		case <-ctx.Done():
			_ = p.cmd.Process.Kill()
			for range p.replies {
			}
			<-p.exited
			return fmt.Errorf("%s did not end, and was killed", p.cmd.Path)
		}
	}
}

func (p *process) failure() error {
	if p.exit == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", p.cmd.Path, p.exit, p.stderr.String())
}

// tail keeps the last that a process said.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(len(t.b)-2000, 0):]
	return len(p), nil
}

// String is the last line, in which programs of this house say what is wrong.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := bytes.TrimSpace(t.b)
	return strings.TrimSpace(string(b[bytes.LastIndexByte(b, '\n')+1:]))
}
