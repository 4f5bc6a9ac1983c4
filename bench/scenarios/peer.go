package scenarios

import (
	"bufio"
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

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/slotmap"
)

// Peer is a program, in any language, that writes replicas its own way, to be measured beside the others in the same
// run: the scenarios publish and delta ask it for one operation at a time. PEERS.md has the protocol.
type Peer struct {
	Name    string   // of its variant
	Command []string // program and arguments
}

// peerStart is how long a peer may take until it is connected. It may have something to install first.
const peerStart = 2 * time.Minute

// peers are those of one part.
type peers struct {
	running []*peer
	absent  []bench.Mark
}

// startPeers starts each peer. One that cannot be had is left out of the part, and the result says why.
func (s *stage) startPeers(ctx context.Context, name string) *peers {
	ps := &peers{}
	for _, p := range s.target.Peers {
		running, err := s.startPeer(ctx, p, name)
		if err != nil {
			ps.absent = append(ps.absent, bench.Mark{Kind: bench.Partial, Reason: fmt.Sprintf("%s is left out: %v", p.Name, err)})
			continue
		}
		ps.running = append(ps.running, running)
	}
	return ps
}

func (ps *peers) close() {
	for _, p := range ps.running {
		p.close()
	}
}

// mark notes in a result who is missing, and takes out what was counted of this process while a peer was at work.
func (ps *peers) mark(res *bench.Result) {
	if res == nil {
		return
	}
	res.Marks = append(res.Marks, ps.absent...)
	for _, p := range ps.running {
		if v := res.Variant(p.name); v != nil {
			delete(v.Counters, bench.AllocsPerOp)
			delete(v.Counters, bench.BytesPerOp)
		}
	}
}

// peer is a running program. It does one thing at a time.
type peer struct {
	name    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies chan peerReply
	stderr  *tail
	exited  chan struct{}
}

type peerRequest struct {
	Op string `json:"op"`

	// open
	Nodes    []string `json:"nodes,omitempty"`
	Username string   `json:"username,omitempty"`
	Password string   `json:"password,omitempty"`
	Keys     []string `json:"keys,omitempty"` // of the replicas

	// publish
	Members []string `json:"members,omitempty"`

	// apply
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

type peerReply struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

func (s *stage) startPeer(ctx context.Context, p Peer, name string) (_ *peer, err error) {
	o := s.target.Client.Options()
	if o.TLSConfig != nil {
		return nil, errors.New("peers do not speak TLS")
	}
	nodes, err := masters(ctx, s.target.Client)
	if err != nil {
		return nil, err
	}
	open := peerRequest{Op: "open", Username: o.Username, Password: o.Password}
	for _, n := range nodes {
		open.Nodes = append(open.Nodes, n.Options().Addr)
	}
	for _, slot := range s.target.slots(name) {
		open.Keys = append(open.Keys, slotmap.KeyForSlot(name, slot))
	}

	run := &peer{name: p.Name, stderr: &tail{}, replies: make(chan peerReply), exited: make(chan struct{})}
	run.cmd = exec.Command(p.Command[0], p.Command[1:]...)
	run.cmd.Stderr = run.stderr
	if run.in, err = run.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := run.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := run.cmd.Start(); err != nil {
		return nil, err
	}
	go run.read(out)
	ctx, cancel := context.WithTimeout(ctx, peerStart)
	defer cancel()
	if err := run.ask(ctx, open); err != nil {
		run.close()
		return nil, err
	}
	return run, nil
}

// read passes on the replies until the program ends.
func (p *peer) read(out io.Reader) {
	defer close(p.exited)
	defer close(p.replies)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r peerReply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			r = peerReply{Error: fmt.Sprintf("it answered %.80q, which is no reply", lines.Text())}
		}
		p.replies <- r
	}
	_ = p.cmd.Wait() // how it ended shows in what it wrote
}

// ask sends a request and waits for its reply. The program cannot be interrupted in the middle of an operation; when ctx
// ends it is not asked again.
func (p *peer) ask(ctx context.Context, req peerRequest) error {
	line, err := json.Marshal(req)
	if err != nil {
		return err
	}
	// It may hang before it has read the request.
	unhook := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer unhook()
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return p.ended()
	}
	select {
	case r, ok := <-p.replies:
		switch {
		case !ok:
			return p.ended()
		case !r.OK:
			return fmt.Errorf("%s: %s", p.name, r.Error)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *peer) ended() error {
	<-p.exited
	if last := p.stderr.last(); last != "" {
		return errors.New(last)
	}
	return fmt.Errorf("%s ended: %v", p.cmd.Path, p.cmd.ProcessState)
}

// close ends the program: the end of its input tells it to, and after a while it is killed.
func (p *peer) close() {
	_ = p.in.Close()
	kill := time.AfterFunc(3*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	for range p.replies { // a reply that nobody waited for would keep it from ending
	}
	<-p.exited
}

func (p *peer) publisher(name string, t *turns) writer {
	publish := func(ctx context.Context) error {
		return p.ask(ctx, peerRequest{Op: "publish", Members: t.members[t.next()]})
	}
	return writer{name: p.name, setUp: publish, write: publish, wrote: t.wrote(name)}
}

func (p *peer) applier(name string, c *change, members []string) writer {
	return writer{name: p.name, wrote: c.wrote(name, members), write: func(ctx context.Context) error {
		add, remove := c.next()
		return p.ask(ctx, peerRequest{Op: "apply", Add: add, Remove: remove})
	}}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	t.buf = t.buf[max(0, len(t.buf)-4096):]
	return len(b), nil
}

// last returns the last line that is not empty.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.buf), []byte("\n"))
	return strings.TrimSpace(string(lines[len(lines)-1]))
}
