package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/bench/internal/program"
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

func (ps *peers) close(ctx context.Context) {
	for _, p := range ps.running {
		p.close(ctx)
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

// peer is a running program. It does one thing at a time, and cannot be interrupted in the middle of it.
type peer struct {
	name    string
	program *program.Program
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

func (s *stage) startPeer(ctx context.Context, p Peer, name string) (*peer, error) {
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

	started, err := program.Start(exec.Command(p.Command[0], p.Command[1:]...))
	if err != nil {
		return nil, err
	}
	run := &peer{name: p.Name, program: started}
	opening, cancel := context.WithTimeout(ctx, peerStart)
	defer cancel()
	if err := run.ask(opening, open); err != nil {
		run.close(ctx)
		return nil, err
	}
	return run, nil
}

func (p *peer) ask(ctx context.Context, req peerRequest) error {
	var r peerReply
	if err := p.program.Ask(ctx, req, &r); err != nil {
		return err
	}
	if !r.OK {
		return fmt.Errorf("%s: %s", p.name, r.Error)
	}
	return nil
}

// close gives the program a while to end, unless ctx has ended. How it ended shows in what it wrote.
func (p *peer) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_ = p.program.Close(ctx)
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
