package replset

import "time"

// Options of a Set. The zero value, and a nil pointer, are usable.
type Options struct {
	// Adopt lets writes overwrite keys that this package did not write, where
	// they stand at a replica's place. By default they are refused with a
	// *ForeignKeyError.
	Adopt bool

	// Patience bounds how long a write keeps trying the slots that fail for a
	// passing reason: a failover, a moving slot, a node that is loading. After
	// it, or when ctx ends, they are named in a *WriteError. 0 means 10 s.
	Patience time.Duration

	// ReadPatience is the same bound for a read. 0 means 2 s.
	ReadPatience time.Duration

	// Slots are those that hold a replica, where sharded keys are known to lie in
	// a few. nil means all 16384. The home slot is always among them. Every
	// process must give the same; a read near a key of another slot is
	// ErrReplicaMissing.
	Slots []uint16

	// WaitReplicas is how many server replicas of each master must have
	// acknowledged a write before it counts, waiting for up to 1 s. Slots of a
	// master with fewer fail with ErrUnderReplicated, though they are written. It
	// narrows what a failover may lose; it does not rule a loss out. 0 means none.
	WaitReplicas int

	// MaxBytes bounds the memory of all replicas on the masters together: a
	// Publish that would take more is refused with a *TooLargeError. 0 means
	// 256 MiB, a negative number no bound.
	MaxBytes int64

	// ReadReplicas sends reads to server replicas where the backend can
	// (ReplicaReader), which takes load from the masters. Such a read may be as old
	// as the replication is late; where the set's replica is missing there, the
	// master is asked.
	ReadReplicas bool

	// StepTime is how long a write keeps a node busy at a time, going by how late
	// its replies are. Other clients of the node wait for as long: give less where
	// their latency counts for more than how soon a write is everywhere. 0 means
	// 850 us. A replica is one step at least.
	StepTime time.Duration

	// Progress, if set, is called while a write goes on, after each step, by
	// one goroutine at a time. It must not block.
	Progress func(Progress)
}

// Progress of one write.
type Progress struct {
	Op     string // "publish", "add", ...
	Done   int    // slots that hold the write
	Failed int    // slots that failed so far; those with a passing reason are tried again
	Total  int    // slots to write
}

const (
	defaultPatience     = 10 * time.Second
	defaultReadPatience = 2 * time.Second
	defaultMaxBytes     = 256 << 20
	defaultStepTime     = 850 * time.Microsecond // less leaves the servers waiting for the next step
)

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Patience == 0 {
		opts.Patience = defaultPatience
	}
	if opts.ReadPatience == 0 {
		opts.ReadPatience = defaultReadPatience
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = defaultMaxBytes
	}
	if opts.StepTime == 0 {
		opts.StepTime = defaultStepTime
	}
	return opts
}
