package harness

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A Node is one server. Its methods may be called concurrently.
type Node struct {
	name, addr, id string

	direct   string // where the harness itself talks to the server
	password string
	tls      *tls.Config // nil without Options.TLS
	persist  bool
	timeline *Timeline
	server   Server // nil for a server that runs elsewhere
	proxy    *proxy // nil without Options.Proxied
	routes   proxies

	mu    sync.Mutex // held through each fault, so that faults of a node happen one after another
	saved bool
	fault atomic.Int32 // the State that was last done to it
}

// Name returns the node's name in its group, such as "node-1" or "shard-1".
func (n *Node) Name() string { return n.name }

// Addr returns the host:port where clients reach the node. It stays the same across restarts.
func (n *Node) Addr() string { return n.addr }

// ID returns the node's id in its cluster, 40 hex digits, or "" for a shard.
func (n *Node) ID() string { return n.id }

// String returns the name and the address.
func (n *Node) String() string { return n.name + " (" + n.addr + ")" }

// Do sends one command and returns the reply in RESP2's shape: string, int64, nil or []any. An error reply is
// returned as an error that wraps a ReplyError. A ReplyError inside an array stays there.
//
// Each call has a connection of its own. It ends with ctx, or after 5 s if ctx has no deadline, and is not
// retried; no redirection is followed.
func (n *Node) Do(ctx context.Context, args ...string) (any, error) {
	replies, err := n.Pipeline(ctx, args)
	if err != nil {
		return nil, err
	}
	if refused, ok := replies[0].(ReplyError); ok {
		return nil, n.errorf("%s: %w", args[0], refused)
	}
	return replies[0], nil
}

// Pipeline sends the commands in order on one connection, as ASKING and MULTI need it, and returns a reply for each; an
// error reply is a ReplyError in its place. The error is about the connection. Otherwise it is like Do.
func (n *Node) Pipeline(ctx context.Context, commands ...[]string) ([]any, error) {
	for _, args := range commands {
		if len(args) == 0 {
			return nil, n.errorf("a command has no name")
		}
	}
	if len(commands) == 0 {
		return nil, nil
	}
	replies, err := exchange(ctx, n.direct, n.tls, n.password, commands...)
	if err != nil {
		return nil, n.errorf("%s: %w", commands[0][0], err)
	}
	return replies, nil
}

// A State is how a node looks from outside.
type State int

const (
	Running State = iota // it answers
	Frozen               // it is there, but does not answer a PING within 1 s
	Dead                 // its process has ended, or its port refuses connections
)

func (s State) String() string {
	switch s {
	case Running:
		return "running"
	case Frozen:
		return "frozen"
	case Dead:
		return "dead"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

const pingTimeout = time.Second

// State looks at the node now. It does not rely on what was done to it, so it also tells of a server that ended by itself. If ctx
// ends before there is an answer, the node passes for frozen.
func (n *Node) State(ctx context.Context) State {
	if n.server != nil && n.server.Exited() != nil {
		return Dead
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err := n.Do(ctx, "PING")
	var refused ReplyError // such as LOADING: an answer all the same
	switch {
	case err == nil || errors.As(err, &refused):
		return Running
	case n.server == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
		return Frozen
	case n.server == nil:
		return Dead
	}
	// A server on its way out refuses connections a little before its process is gone.
	for n.server.Exited() == nil {
		select {
		case <-ctx.Done():
			return Frozen
		case <-time.After(time.Millisecond):
		}
	}
	return Dead
}

// Alive reports whether the node answers.
func (n *Node) Alive(ctx context.Context) bool { return n.State(ctx) == Running }

// Kill ends the server at once (SIGKILL) and returns when it is gone.
func (n *Node) Kill() error {
	return n.do("kill", Dead, Server.Kill)
}

// Freeze stops the server (SIGSTOP): it keeps its connections, accepts new ones, and answers nothing.
func (n *Node) Freeze() error {
	return n.do("freeze", Frozen, Server.Freeze)
}

// Thaw lets a frozen server go on (SIGCONT).
func (n *Node) Thaw() error {
	return n.do("thaw", Running, Server.Thaw)
}

func (n *Node) do(what string, after State, fault func(Server) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server == nil {
		return n.unsupported(what)
	}
	if after != Dead && n.server.Exited() != nil {
		return n.errorf("%s: the server is dead: restart it first", what)
	}
	start := time.Now()
	if err := fault(n.server); err != nil {
		return n.errorf("%s: %w", what, err)
	}
	n.fault.Store(int32(after))
	n.timeline.since(start, n.name, what)
	return nil
}

// What a restarted server finds.
type Data int

const (
	WithData Data = iota // with Options.Persist all it acknowledged, otherwise what Node.Save last wrote
	Empty                // nothing but, in a cluster, its own id and its view of the cluster
)

// Restart kills the server if it is still there, starts it again on the same address, and returns when it answers, with its data
// loaded. In a cluster it may take longer until it serves: see Cluster.WaitReady.
//
// A master that comes back Empty before its cluster has noticed empties its replicas too, as in real life.
//
// WithData is ErrUnsupported for a node that kept nothing: start with Options.Persist, or call Save first.
func (n *Node) Restart(ctx context.Context, d Data) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	what := "restart with data"
	if d == Empty {
		what = "restart empty"
	}
	if n.server == nil {
		return n.unsupported(what)
	}
	if d == WithData && !n.persist && !n.saved {
		return n.errorf("%s: %w: it keeps no data: set Options.Persist, or call Save before", what, ErrUnsupported)
	}
	ctx, cancel := withTimeoutUnlessSet(ctx, startTimeout)
	defer cancel()
	start := time.Now()
	if err := n.server.Kill(); err != nil {
		return n.errorf("%s: %w", what, err)
	}
	n.fault.Store(int32(Dead))
	if d == Empty {
		n.saved = false
	}
	if err := n.server.Start(ctx, d == Empty); err != nil {
		return n.errorf("%s: %w", what, err)
	}
	if err := n.waitAnswer(ctx); err != nil {
		return err
	}
	n.fault.Store(int32(Running))
	n.timeline.since(start, n.name, what)
	return nil
}

// Save makes the server write a snapshot, which a later Restart WithData finds: an old one, if more was written since. It is
// ErrUnsupported with Options.Persist, where the append-only file is read instead.
func (n *Node) Save(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server == nil {
		return n.unsupported("save")
	}
	if n.persist {
		return n.errorf("save: %w: with Options.Persist a restart does not read snapshots", ErrUnsupported)
	}
	start := time.Now()
	if _, err := n.Do(ctx, "SAVE"); err != nil {
		return err
	}
	n.saved = true
	n.timeline.since(start, n.name, "save")
	return nil
}

// Version asks the server what it is.
func (n *Node) Version(ctx context.Context) (Version, error) {
	info, err := n.text(ctx, "INFO", "server")
	if err != nil {
		return Version{}, err
	}
	return parseVersion(info)
}

// LogTail returns the last lines of the server's log, or "" for a server that runs elsewhere.
func (n *Node) LogTail(lines int) string {
	if n.server == nil {
		return ""
	}
	return n.server.LogTail(lines)
}

// waitAnswer waits until the server answers with its data loaded, and is ours.
func (n *Node) waitAnswer(ctx context.Context) error {
	err := poll(ctx, func() error {
		if n.server != nil {
			if err := n.server.Exited(); err != nil {
				return finalError{err}
			}
		}
		return n.notAnswering(ctx)
	})
	if err != nil {
		return n.errorf("did not start: %w; the end of its log:\n%s", err, cmp.Or(n.LogTail(logLines), "(nothing)"))
	}
	return nil
}

// logLines is how much of a server's log an error shows.
const logLines = 12

func (n *Node) notAnswering(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	replies, err := exchange(ctx, n.direct, n.tls, n.password, []string{"PING"}, []string{"INFO", "server"})
	if err != nil {
		return err
	}
	if refused, ok := replies[0].(ReplyError); ok { // such as LOADING
		return refused
	}
	info, _ := replies[1].(string)
	if n.server != nil && n.server.PID() != 0 {
		if got := infoField(info, "process_id"); got != strconv.Itoa(n.server.PID()) {
			return fmt.Errorf("another server answers, with process id %q: %w", got, ErrAddrInUse)
		}
	}
	return nil
}

// running reports whether, as far as was done to it, the node should answer.
func (n *Node) running() bool { return State(n.fault.Load()) == Running }

func (n *Node) text(ctx context.Context, args ...string) (string, error) {
	reply, err := n.Do(ctx, args...)
	if err != nil {
		return "", err
	}
	s, ok := reply.(string)
	if !ok {
		return "", n.errorf("%s: the reply is a %T, want text", args[0], reply)
	}
	return s, nil
}

func (n *Node) unsupported(what string) error {
	return n.errorf("%s: %w: the server was named by address and is not ours to break: set Options.Private", what, ErrUnsupported)
}

func (n *Node) errorf(format string, args ...any) error {
	return fmt.Errorf("harness: %v: "+format, append([]any{n}, args...)...)
}
