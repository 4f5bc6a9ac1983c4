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
	return opts
}
