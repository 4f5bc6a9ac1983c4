package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardkit/shardkit/bench"
)

// Scenario is a question, in one or several parts.
type Scenario struct {
	Name  string
	Doc   string // one line
	Parts []Part

	// Cluster means that it needs one, Shards that it needs independent servers. With neither it is computed, or measures
	// this process alone.
	Cluster, Shards bool

	// Load means that Options.Rate and Workers apply. Other scenarios are about one writer at a time.
	Load bool
}

// Part is one run.
type Part struct {
	Name string // begins with the scenario's
	Doc  string // one line

	// Long parts run only when asked for by name, or in a long run.
	Long bool

	cluster, shards, load bool
	faults                bool                                                 // it kills servers
	metric                string                                               // of package bench: what variants are compared by; none if it is computed
	takes                 time.Duration                                        // about, in a short run
	slice, count          int                                                  // bench.Options.SliceOps and CountOps
	run                   func(context.Context, *stage) (*bench.Result, error) // the result is nil only with an error
}

// All returns the scenarios there are.
func All() []Scenario {
	all := []Scenario{
		{Name: "publish", Doc: "replace a set in every slot: Publish beside pipelines of DEL, SADD and RENAME", Parts: publishParts(), Cluster: true},
		{Name: "delta", Doc: "change a set in every slot: Apply beside pipelines of SADD and SREM", Parts: deltaParts(), Cluster: true},
		{Name: "intersect", Doc: "ask which members two sets share: Intersect, a bare SINTER, fetching both sets", Parts: intersectParts(), Cluster: true, Load: true},
		{Name: "count", Doc: "ask how many they share: Count, a bare SINTERCARD, fetching both sets", Parts: countParts(), Cluster: true, Load: true},
		{Name: "reader-p99", Doc: "what a reader in a process of its own feels while a set is published in a loop, each way", Parts: readerParts(), Cluster: true},
		{Name: "rungs", Doc: "write a set by each way of the ladder: node scripts, key scripts, transactions", Parts: rungParts(), Cluster: true},
		{Name: "verify", Doc: "look for replicas that are not as they should be: all, a sample, by hand", Parts: verifyParts(), Cluster: true},
		{Name: "cache", Doc: "a cache on three shards beside the client: get, load, set, how soon others see it", Parts: cacheParts(), Shards: true},
		{Name: "failover", Doc: "lose one of three shards of a cache, and get it back: how long its keys cannot be written", Parts: failoverParts(), Shards: true},
		{Name: "ring", Doc: "find the node of a key in package ring, without servers", Parts: ringParts()},
		{Name: "coverage", Doc: "one key, one per node, one per slot: what can be asked, what reshards break (computed)", Parts: coverageParts()},
	}
	for _, s := range all {
		for i := range s.Parts {
			s.Parts[i].cluster, s.Parts[i].shards, s.Parts[i].load = s.Cluster, s.Shards, s.Load
		}
	}
	return all
}

// UnknownError says that there is no scenario, and no part of one, of that name.
type UnknownError struct {
	Name  string
	Known []string // names of scenarios
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("bench: no scenario is called %q: choose from %s, or name a part of one", e.Name, strings.Join(e.Known, ", "))
}

// Select returns the parts of the scenarios named, or single parts named themselves, without duplicates, in the order
// given. Of a scenario it leaves out the long parts unless long is set.
func Select(long bool, names ...string) ([]Part, error) {
	all := All()
	var parts []Part
	add := func(p Part) {
		if !slices.ContainsFunc(parts, func(q Part) bool { return q.Name == p.Name }) {
			parts = append(parts, p)
		}
	}
	for _, name := range names {
		found := false
		for _, s := range all {
			// A scenario of one part has the part's name.
			for _, p := range s.Parts {
				if s.Name == name && (long || !p.Long) || p.Name == name {
					add(p)
					found = true
				}
			}
		}
		if !found {
			e := &UnknownError{Name: name}
			for _, s := range all {
				e.Known = append(e.Known, s.Name)
			}
			return nil, e
		}
	}
	return parts, nil
}

// NeedShards reports whether any of the parts runs on independent servers.
func NeedShards(parts []Part) bool {
	return slices.ContainsFunc(parts, func(p Part) bool { return p.shards })
}

// NeedCluster reports whether any of the parts runs on a cluster.
func NeedCluster(parts []Part) bool {
	return slices.ContainsFunc(parts, func(p Part) bool { return p.cluster })
}

// CanGate reports whether Gate can compare builds by this part: its variants are operations, and nothing goes on beside.
func (p Part) CanGate() bool { return p.metric == "response_p50" && !p.faults }

// metricOf is what the named part compares its variants by.
func metricOf(name string) string {
	for _, s := range All() {
		for _, p := range s.Parts {
			if p.Name == name {
				return p.metric
			}
		}
	}
	return ""
}
