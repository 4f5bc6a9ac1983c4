package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A FaultKind is what is done to a shard, its network, or a process.
type FaultKind string

const (
	Kill     FaultKind = "kill"     // of a shard, which is away for a while and comes back empty
	Restart  FaultKind = "restart"  // the same, at once
	Old      FaultKind = "old"      // of a shard, which comes back with an older snapshot
	Freeze   FaultKind = "freeze"   // of a shard: SIGSTOP, and SIGCONT
	Flap     FaultKind = "flap"     // several short freezes
	Cut      FaultKind = "cut"      // connections are reset and refused
	Stall    FaultKind = "stall"    // the network holds everything back, and delivers it later
	Slow     FaultKind = "slow"     // the network takes longer
	Swallow  FaultKind = "swallow"  // single notices vanish
	Deafen   FaultKind = "deafen"   // all notices vanish
	Drop     FaultKind = "drop"     // subscribers are disconnected
	Memory   FaultKind = "memory"   // the shard's memory is full
	Flush    FaultKind = "flush"    // FLUSHALL
	Replica  FaultKind = "replica"  // the shard becomes a replica, which refuses writes
	Join     FaultKind = "join"     // of the spare shard, which processes add one after the other
	Leave    FaultKind = "leave"    // of the spare shard, which processes remove one after the other
	KillProc FaultKind = "killproc" // of a process, which is started again
	StopProc FaultKind = "stopproc" // of a process: SIGSTOP, and SIGCONT
)

// FaultKinds are all kinds of faults.
var FaultKinds = []FaultKind{Kill, Restart, Old, Freeze, Flap, Cut, Stall, Slow, Swallow, Deafen, Drop, Memory, Flush, Replica, Join, Leave, KillProc, StopProc}

// out reports whether the fault keeps processes from using the shard.
func (k FaultKind) out() bool {
	switch k {
	case Kill, Restart, Old, Freeze, Flap, Cut, Stall, Memory, Replica:
		return true
	}
	return false
}

// network reports whether the fault may concern a single process.
func (k FaultKind) network() bool {
	switch k {
	case Cut, Stall, Slow, Swallow, Deafen:
		return true
	}
	return false
}

// members reports whether the fault changes which shards there are.
func (k FaultKind) members() bool { return k == Join || k == Leave }

// A Step is one fault of a schedule.
type Step struct {
	Kind    FaultKind     `json:"fault"`
	Shard   int           `json:"shard"`   // -1: none; the one after the last is the spare
	Process int           `json:"process"` // -1: for all
	At      time.Duration `json:"at"`      // since the load began
	For     time.Duration `json:"for"`     // until it is undone

	Delay  time.Duration `json:"delay,omitempty"`  // of Slow, each way; of Old, how much older the snapshot is
	Times  int           `json:"times,omitempty"`  // of Flap
	Part   float64       `json:"part,omitempty"`   // of Swallow: of the notices
	Policy string        `json:"policy,omitempty"` // of Memory
}

// partial reports whether the fault cuts some processes off from a shard that
// others reach. A shard that is added is one to who has not done so.
func (s *Step) partial() bool {
	return s.Kind == Join || s.Process >= 0 && s.Shard >= 0 && (s.Kind == Cut || s.Kind == Stall || s.Kind == Slow)
}

// lane is what has one fault at a time.
func (s *Step) lane() [2]int {
	switch {
	case s.Kind.members():
		return [2]int{-1, -1}
	case s.Shard >= 0:
		return [2]int{s.Shard, -1}
	}
	return [2]int{-1, s.Process}
}

// evicts reports whether the fault leaves a shard full that makes room by itself, and
// need not refuse writes.
func (s *Step) evicts() bool { return s.Kind == Memory && s.Policy != "noeviction" }

func (s Step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8.3fs  %-8s", s.At.Seconds(), s.Kind)
	if s.Shard >= 0 {
		fmt.Fprintf(&b, " shard-%d", s.Shard+1)
	}
	if s.Process >= 0 {
		fmt.Fprintf(&b, " process-%d", s.Process+1)
	}
	if s.For > 0 {
		fmt.Fprintf(&b, " for %v", s.For)
	}
	switch {
	case s.Delay > 0:
		fmt.Fprintf(&b, " by %v", s.Delay)
	case s.Times > 0:
		fmt.Fprintf(&b, ", %d times", s.Times)
	case s.Part > 0:
		fmt.Fprintf(&b, ", %.0f %%", 100*s.Part)
	case s.Policy != "":
		fmt.Fprintf(&b, ", %s", s.Policy)
	}
	return b.String()
}

var policies = []string{"allkeys-lru", "allkeys-random", "volatile-ttl", "noeviction"}

// Plan draws a schedule: the same for the same seed and options. Each shard, and
// each process, has at most one fault at a time, so several may have one at once.
// All are undone before the end, but for the spare shard, which may be there or not.
func Plan(o *Options) ([]Step, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return opts.plan(), nil
}

func (o *Options) plan() []Step {
	var steps []Step
	var shardKinds, processKinds []FaultKind
	for _, k := range o.Faults {
		switch {
		case k == KillProc || k == StopProc:
			processKinds = append(processKinds, k)
		case !k.members():
			shardKinds = append(shardKinds, k)
		}
	}
	shards := o.Shards
	if slices.Contains(o.Faults, Join) {
		shards++
		r := rand.New(rand.NewPCG(o.Seed, 2<<32))
		joins := o.lane(r, []FaultKind{Join}, 6, func(s *Step) { s.Shard = o.Shards })
		for i := range joins {
			if i%2 == 1 {
				joins[i].Kind = Leave
			}
		}
		if !slices.Contains(o.Faults, Leave) {
			joins = joins[:min(len(joins), 1)]
		}
		steps = append(steps, joins...)
	}
	for shard := range shards {
		r := rand.New(rand.NewPCG(o.Seed, uint64(shard)))
		steps = append(steps, o.lane(r, shardKinds, 6, func(s *Step) { s.Shard = shard })...)
	}
	for process := range o.Processes {
		r := rand.New(rand.NewPCG(o.Seed, 1<<32|uint64(process)))
		steps = append(steps, o.lane(r, processKinds, 30, func(s *Step) { s.Process = process })...)
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return int(a.At - b.At) })
	return steps
}

// lane is the faults of one shard or process, with pauses of at most so many
// heartbeats in between, in which it may recover or not quite.
func (o *Options) lane(r *rand.Rand, kinds []FaultKind, pause float64, where func(*Step)) (steps []Step) {
	if len(kinds) == 0 {
		return nil
	}
	beats := func(least, most float64) time.Duration {
		d := time.Duration((least + (most-least)*r.Float64()) * float64(o.Heartbeat))
		return d.Round(time.Millisecond)
	}
	at := beats(1, pause)
	for {
		s := Step{Kind: kinds[r.IntN(len(kinds))], Shard: -1, Process: -1, At: at}
		where(&s)
		// The lives of one draw do not depend on the kind, so that a schedule without
		// some kind is not another one altogether.
		life, alone := beats(0.3, 6), r.IntN(2) == 0
		process, variant, part := r.IntN(o.Processes), r.IntN(64), r.Float64()
		s.For = life
		switch s.Kind {
		case Restart, Drop, Flush:
			s.For = 0
		case Flap:
			s.Times = 2 + variant%4
		case Slow:
			s.Delay = time.Duration(part * part * 0.4 * float64(o.Heartbeat)).Round(time.Millisecond)
		case Old:
			s.Delay = time.Duration(part * 4 * float64(o.Heartbeat)).Round(time.Millisecond)
		case Swallow:
			s.Part = 0.05 + 0.4*part
		case Memory:
			s.Policy = policies[variant%len(policies)]
		}
		if s.Kind.network() && alone {
			s.Process = process
		}
		// Two long absences in one: now and then a fault outlasts everything else.
		if variant == 7 {
			s.For *= 2
		}
		at += s.For + s.Delay
		if at+o.Heartbeat > o.Duration {
			return steps
		}
		steps = append(steps, s)
		at += beats(0.2, pause)
	}
}
