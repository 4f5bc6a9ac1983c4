package conformance

import "time"

// A Case checks one requirement. Extra ones join the suite by Target.Cases.
type Case struct {
	// ID is stable: reports of different versions are compared by it. It is never used again for something else.
	ID string

	// Name is short, of lower-case words joined by dashes: "missing-key-is-nil".
	Name string

	// Requirement is the rule in words, as an author reads it when it is broken.
	Requirement string

	Profile Profile
	Level   Level
	Tier    Tier

	// Features are those that the case is about. It is unsupported by a target that does not promise them all.
	Features []Feature

	// Run checks. It returns, or ends by t.Fatalf and the like, within the time of its tier. It is called once a run, and
	// never at the same time as another case.
	Run func(t *T)
}

// A Profile is a subject; an implementation conforms to a profile, not to a case.
type Profile string

const (
	Slots   Profile = "slots"   // which slot a key is in, and the tag that names a slot
	Replset Profile = "replset" // what a replicated set asks of a Redis Cluster client
	Ring    Profile = "ring"    // placement of keys on independent nodes

	Tiercache Profile = "tiercache" // what a cache asks of a client of one Redis server
)

// Profiles are all of them.
var Profiles = []Profile{Slots, Replset, Ring, Tiercache}

// A Level says who must pass.
type Level string

const (
	Core     Level = "core"     // whoever claims the profile
	Extended Level = "extended" // whoever promises the case's features
)

// A Tier says what a case needs and does.
type Tier string

const (
	Contract Tier = "contract" // one call, one answer; a healthy cluster or none
	Property Tier = "property" // random input against a model; a healthy cluster or none
	Live     Tier = "live"     // whole operations on real servers that are well
	Fault    Tier = "fault"    // servers that are broken on purpose, so only the suite's own
)

// Tiers are all of them, mildest first.
var Tiers = []Tier{Contract, Property, Live, Fault}

// time is how long a case of the tier may take before it counts as hung.
func (tier Tier) time() time.Duration {
	switch tier {
	case Contract:
		return 30 * time.Second
	case Fault:
		return 90 * time.Second
	}
	return time.Minute
}

// A Feature is something that an implementation may have besides what the core asks.
type Feature string

// ReplicaReader is reading from server replicas: the backend is a replset.ReplicaReader.
const ReplicaReader Feature = "replica-reader"

// Tracker is telling of keys that change: the shard is a tiercache.Tracker.
const Tracker Feature = "tracker"

// Dedicator is giving connections of one's own: the shard is a tiercache.Dedicator.
const Dedicator Feature = "dedicator"

// Cases returns the suite's own cases, in the order of their ids.
func Cases() []Case {
	var all []Case
	for _, some := range [][]Case{slotCases, contractCases(), liveCases, faultCases, ringCases, shardRuleCases(), shardCases} {
		all = append(all, some...)
	}
	return all
}

// local reports whether the case needs neither servers nor a backend.
func (c Case) local() bool {
	return c.Profile != Replset && c.Profile != Tiercache && (c.Tier == Contract || c.Tier == Property)
}
