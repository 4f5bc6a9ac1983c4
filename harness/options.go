package harness

import (
	"errors"
	"fmt"
	"time"
)

// Options says what to start. The zero value works: a cluster of 3 masters without replicas, or 3 shards, without
// persistence or password.
type Options struct {
	// Masters is the number of masters of a cluster, which share the slots evenly. 0 means 3; the most is 1000.
	// A cluster of 1 or 2 works, but cannot fail over by itself: that takes a majority of masters.
	Masters int

	// Replicas is the number of replicas per master. 0 means none.
	Replicas int

	// Shards is the number of independent servers that StartShards starts. 0 means 3, or all the
	// servers that $SHARDKIT_SHARDS names.
	Shards int

	// Addrs names servers that already run, as host:port, to be used in place of new ones: any nodes of
	// one cluster, or the shards. Their data is left as it is, and the faults that need a hold on the process
	// return ErrUnsupported. nil means $SHARDKIT_CLUSTER or $SHARDKIT_SHARDS (comma-separated).
	Addrs []string

	// Private asks for servers that nobody else uses: the addresses in the environment are passed over. Set it
	// in tests that make faults. They are also passed over, and Log told, where they cannot honour the other options:
	// Server, Args, Persist, Users, TLS, Proxied or NodeTimeout, or more nodes than they are.
	Private bool

	// Server is the server's binary, or a script that execs it: a path, or a name to be found in PATH. "" means
	// $SHARDKIT_SERVER, else redis-server, else valkey-server, in PATH and in the usual places.
	Server string

	// Args are more flags for every server, such as "--maxmemory", "64mb". They come last, so they win.
	Args []string

	// Persist keeps an append-only file, so that a server restarted WithData has all it acknowledged.
	// Without it a server has only what Node.Save wrote.
	Persist bool

	// Password, if not empty, is asked of clients, replicas and this harness alike (requirepass, masterauth).
	Password string

	// Users are more users than the default one: name to rules, as ACL SETUSER takes them: "on >secret ~cache:* +@read". The
	// default user stays, with all rights and Options.Password. They are kept in a file of the server's (users.acl), so
	// they are there again after a restart.
	Users map[string]string

	// TLS makes the servers listen for TLS alone, also among themselves, with a certificate for 127.0.0.1 from an
	// authority made for this one group: clients need Group.TLS. A server that was built without TLS is
	// ErrUnsupported.
	TLS bool

	// Proxied puts a TCP proxy of this program between every server and its clients, so that the network can be
	// cut, stalled and slowed: see Node.Cut. A round trip takes some 30 us longer.
	Proxied bool

	// NodeTimeout is the cluster's cluster-node-timeout. 0 means 1 s, the least is 100 ms.
	NodeTimeout time.Duration

	// Log, if not nil, is told what is going on, a line a call: t.Logf and log.Printf fit. It is not
	// called after Close.
	Log func(format string, args ...any)

	// Providers are asked in turn for servers until one has some. nil means Processes() alone.
	Providers []Provider
}

const (
	defaultNodes       = 3
	defaultNodeTimeout = time.Second
	startTimeout       = 30 * time.Second // where the caller's context has no deadline
)

// ownOnly names the options that take a server of one's own.
const ownOnly = "Server, Args, Persist, Users, TLS, Proxied or NodeTimeout"

func (o Options) needsOwn() bool {
	return o.Server != "" || len(o.Args) > 0 || o.Persist || len(o.Users) > 0 || o.TLS || o.Proxied || o.NodeTimeout != 0
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Masters < 0 || o.Masters > 1000:
		return o, fmt.Errorf("harness: Options.Masters is %d, want 0 to 1000", o.Masters)
	case o.Replicas < 0 || o.Replicas > 100:
		return o, fmt.Errorf("harness: Options.Replicas is %d, want 0 to 100", o.Replicas)
	case o.Shards < 0 || o.Shards > 1000:
		return o, fmt.Errorf("harness: Options.Shards is %d, want 0 to 1000", o.Shards)
	case o.NodeTimeout != 0 && o.NodeTimeout < 100*time.Millisecond:
		return o, fmt.Errorf("harness: Options.NodeTimeout is %v, want at least 100ms", o.NodeTimeout)
	case o.Addrs != nil && len(o.Addrs) == 0:
		return o, errors.New("harness: Options.Addrs is empty: name a server, or leave it nil")
	case o.Addrs != nil && (o.Private || o.needsOwn()):
		return o, fmt.Errorf("harness: %w: servers named by Options.Addrs cannot honour Private, %s", ErrUnsupported, ownOnly)
	}
	if err := checkUsers(o.Users); err != nil {
		return o, err
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Providers == nil {
		o.Providers = []Provider{Processes()}
	}
	return o, nil
}
