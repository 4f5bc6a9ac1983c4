package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// A process is one life of a worker, as who started it sees it.
type process struct {
	config
	cmd    *exec.Cmd
	orders io.WriteCloser
	did    chan string // the answers to orders
	gone   chan struct{}
	stderr tail

	ordering sync.Mutex // held until an order is answered

	mu     sync.Mutex
	killed bool // on purpose
}

// A starter starts processes from one thread, which lives until it is closed: they
// are bound to the thread, not to the program.
type starter chan func()

func newStarter() starter {
	s := make(starter)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range s {
			f()
		}
	}()
	return s
}

func (s starter) start(cmd *exec.Cmd) (err error) {
	done := make(chan struct{})
	s <- func() {
		defer close(done)
		err = cmd.Start()
	}
	<-done
	return err
}

// startProcess starts a worker, whose lines go to take.
func startProcess(s starter, program string, c config, truth *os.File, take func(*line)) (*process, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	p := &process{config: c, cmd: exec.Command(program), did: make(chan string, 1), gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	p.cmd.ExtraFiles = []*os.File{truth} // its truthFile
	p.cmd.SysProcAttr = bound()
	p.cmd.Stderr = &p.stderr
	lines, err := p.cmd.StdoutPipe()
	if err == nil {
		p.orders, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = s.start(p.cmd)
	}
	if err != nil {
		return nil, fmt.Errorf("soak: start process %d: %w", c.Process+1, err)
	}
	go func() {
		defer close(p.gone)
		closed := false
		r := bufio.NewReaderSize(lines, 64<<10)
		for {
			b, err := r.ReadBytes('\n')
			if err != nil {
				break // what comes before is a line that was not finished
			}
			var l line
			if err := json.Unmarshal(b, &l); err != nil {
				take(p.incident("crash", fmt.Sprintf("it wrote %.200q: %v", b, err)))
				continue
			}
			take(&l)
			if l.Did != "" {
				closed = l.Did == "close"
				p.did <- l.Did
			}
		}
		err := p.cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.killed && (err != nil || !closed) {
			take(p.incident("crash", fmt.Sprintf("it ended by itself: %v\n%s", p.cmd.ProcessState, p.stderr.String())))
		}
	}()
	return p, nil
}

func (p *process) incident(kind, text string) *line {
	return &line{Incident: &Incident{kind, p.Process, p.Life, monotonic(), text}}
}

// kill ends the process at once.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	p.cmd.Process.Kill()
	<-p.gone
}

func (p *process) wasKilled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

var errGone = errors.New("soak: the process is gone")

// order gives a word, and waits until the process has done what it means.
func (p *process) order(ctx context.Context, word string) error {
	p.ordering.Lock()
	defer p.ordering.Unlock()
	if word != "ready" {
		if _, err := io.WriteString(p.orders, word+"\n"); err != nil {
			return errGone
		}
	}
	select {
	case did := <-p.did:
		if did != word {
			return fmt.Errorf("soak: process %d did %q, want %q", p.Process+1, did, word)
		}
		return nil
	case <-p.gone:
		return errGone
	case <-ctx.Done():
		return fmt.Errorf("soak: process %d, %s: %w", p.Process+1, word, ctx.Err())
	}
}

// tail keeps the last of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 16 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if len(t.b) > 2*tailSize {
		t.b = bytes.Clone(t.b[len(t.b)-tailSize:])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b[max(0, len(t.b)-tailSize):])
}
