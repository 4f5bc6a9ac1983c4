package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/tiercache"
)

// A Target is what is checked, and over which servers.
type Target struct {
	// Name is the implementation's, for the report: "goredis".
	Name string

	// Client is the module path of the Redis client, or nothing. The report has its version from the binary's build
	// information.
	Client string

	// Backend connects the backend under test: over a client with the options that its author recommends. It returns
	// what closes that client, or nil. It is called once a case, and more often by cases that want a client which has
	// seen nothing yet. Needed for profile replset.
	Backend func(ctx context.Context, c Connection) (b replset.Backend, close func(), err error)

	// Shard connects the shard under test, over a client with the options that its author recommends, to the one server
	// that the connection names. It is called as Backend is. Needed for profile tiercache.
	Shard func(ctx context.Context, c Connection) (s tiercache.Shard, close func(), err error)

	// Serverless says that backend and shard need no servers, being some themselves. Cases that need real ones are unavailable.
	Serverless bool

	// Slots is the slot function under test. nil means package slotmap.
	Slots *SlotFuncs

	// Ring builds the placement under test: of these nodes, with those of them named in down out of use. Needed for
	// profile ring. ShardkitRing is package ring's.
	Ring func(nodes []ring.Node, down ...string) (Placement, error)

	// Features are what the implementation promises beyond the core.
	Features []Feature

	// Cases join the suite's own.
	Cases []Case

	// KnownFailing names cases, by id, that are known to fail, and why: best the address of an issue. One that passes
	// all the same is an unexpected pass, which fails the run: the entry is out of date.
	KnownFailing map[string]string

	// Profiles are those to check; nil means those that the target has what is needed for. Tiers are those to run; nil
	// means all. Only, if not empty, names the cases to run, by id or name. What is left out is skipped, and the report says so.
	Profiles []Profile
	Tiers    []Tier
	Only     []string

	// Addrs name the nodes of a cluster that somebody else runs. It is used under Prefix and not broken: cases of tier fault
	// are unavailable. For profile tiercache it is one server by itself, so that profile is then checked apart from slots and
	// replset. How to log in is up to Backend and Shard.
	Addrs []string

	// Servers say what to start where neither Addrs nor Cluster are given. The zero value means three masters with a
	// replica each, and for profile tiercache one server besides; Replicas is 1 where it is 0, NodeTimeout NodeTimeout, and Private
	// is always set, since nodes will be broken.
	Servers harness.Options

	// Cluster, if not nil, is used in place of new servers, and not closed. Nodes will be broken, and mended again. Start it with
	// NodeTimeout.
	Cluster *harness.Cluster

	// Shards, if not nil, are used for profile tiercache in place of a new server: the first of them, likewise.
	Shards *harness.Shards

	// Prefix begins every key and every set's name of a run. "" means "shardkit-conformance:" and a random word; a brace is
	// refused.
	Prefix string

	// Seed decides all that is random. 0 means $SHARDKIT_SEED, else a fresh one, which the report and every failure name.
	Seed uint64

	// Slack multiplies every time-out of the suite, for slow machines. 0 means $SHARDKIT_SLACK, else 1.
	Slack float64

	// Rerun is the command that runs one case again, in which {case} and {seed} are replaced. "" means, in Run, the go test
	// command.
	Rerun string

	// Log, if not nil, is told what is going on, a line a call.
	Log func(format string, args ...any)

	// OnResult, if not nil, is told each result as soon as there is one.
	OnResult func(Result)
}

// A Connection says how to reach the servers.
type Connection struct {
	Addrs              []string // of all nodes, as host:port
	Username, Password string   // empty: none
	TLS                *tls.Config

	// Patience is how long the client should wait for a server that is silent. It is short in cases that freeze servers. A
	// client that has no such option passes them by heeding contexts.
	Patience time.Duration
}

// NodeTimeout is a cluster-node-timeout after which nobody takes a server for dead that the machine stopped for a while. The case
// that wants a failover shortens it meanwhile.
const NodeTimeout = 15 * time.Second

const prefix = "shardkit-conformance:"

func (t Target) withDefaults() (Target, error) {
	given := 0
	for _, is := range []bool{len(t.Addrs) > 0, t.Cluster != nil || t.Shards != nil, t.Serverless} {
		if is {
			given++
		}
	}
	switch {
	case t.Name == "":
		return t, errors.New("conformance: Target.Name is empty: name the implementation")
	case given > 1:
		return t, errors.New("conformance: Target.Addrs, Cluster or Shards, and Serverless exclude each other: give one")
	case t.Slack < 0 || math.IsNaN(t.Slack):
		return t, fmt.Errorf("conformance: Target.Slack is %v, want a positive factor", t.Slack)
	}
	if t.Log == nil {
		t.Log = func(string, ...any) {}
	}
	if t.OnResult == nil {
		t.OnResult = func(Result) {}
	}
	if t.Slots == nil {
		t.Slots = shardkitSlots
	}
	if t.Profiles == nil {
		t.Profiles = []Profile{Slots}
		if t.Backend != nil {
			t.Profiles = append(t.Profiles, Replset)
		}
		if t.Ring != nil {
			t.Profiles = append(t.Profiles, Ring)
		}
		if t.Shard != nil {
			t.Profiles = append(t.Profiles, Tiercache)
		}
	}
	for _, p := range t.Profiles {
		switch {
		case p == Replset && t.Backend == nil:
			return t, errors.New("conformance: profile replset needs Target.Backend")
		case p == Ring && t.Ring == nil:
			return t, errors.New("conformance: profile ring needs Target.Ring")
		case p == Tiercache && t.Shard == nil:
			return t, errors.New("conformance: profile tiercache needs Target.Shard")
		case p == Tiercache && len(t.Addrs) > 1:
			return t, fmt.Errorf("conformance: Target.Addrs names %d servers, and profile tiercache is checked on one", len(t.Addrs))
		case (p == Slots || p == Replset) && len(t.Addrs) > 0 && slices.Contains(t.Profiles, Tiercache):
			return t, fmt.Errorf("conformance: Target.Addrs names a cluster for profile %s, or one server for tiercache: check them one after the other", p)
		case !slices.Contains(Profiles, p):
			return t, fmt.Errorf("conformance: there is no profile %q: want some of %q", p, Profiles)
		}
	}
	if t.Tiers == nil {
		t.Tiers = Tiers
	}
	for _, tier := range t.Tiers {
		if !slices.Contains(Tiers, tier) {
			return t, fmt.Errorf("conformance: there is no tier %q: want some of %q", tier, Tiers)
		}
	}
	var err error
	if text := os.Getenv("SHARDKIT_SEED"); t.Seed == 0 && text != "" {
		if t.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return t, fmt.Errorf("conformance: SHARDKIT_SEED: %w", err)
		}
	}
	if text := os.Getenv("SHARDKIT_SLACK"); t.Slack == 0 && text != "" {
		if t.Slack, err = strconv.ParseFloat(text, 64); err != nil || !(t.Slack > 0) {
			return t, fmt.Errorf("conformance: SHARDKIT_SLACK is %q, want a positive factor", text)
		}
	}
	if t.Seed == 0 {
		t.Seed = freshSeed()
	}
	if t.Seed >= 1<<53 {
		return t, fmt.Errorf("conformance: the seed is %d, want less than 2^53, which every reader of JSON holds", t.Seed)
	}
	if t.Slack == 0 {
		t.Slack = 1
	}
	if t.Prefix == "" {
		t.Prefix = prefix + randomWord() + ":"
	}
	t.Servers.Private = true
	if t.Servers.Replicas == 0 {
		t.Servers.Replicas = 1
	}
	if t.Servers.NodeTimeout == 0 {
		t.Servers.NodeTimeout = NodeTimeout
	}
	return t, checkPrefix(t.Prefix)
}
