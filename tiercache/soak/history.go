package soak

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A History is what processes did and saw, and what was done to them and to the
// shards meanwhile. Times are ns of one monotonic clock that all processes share.
type History struct {
	Header    Header
	Ops       []Op
	Faults    []Fault
	Pauses    []Pause
	Shards    []ShardEvent
	Incidents []Incident
	Counts    []Counts
}

// A Header says how a history came about, and by what it is judged.
type Header struct {
	Seed      uint64        `json:"seed"`
	Subject   string        `json:"subject"`
	Client    string        `json:"client"`
	Server    string        `json:"server"`
	Processes int           `json:"processes"`
	Shards    int           `json:"shards"`
	Duration  time.Duration `json:"duration"` // of load and faults
	Start     int64         `json:"start"`

	// Keys below Ordered have one writer at a time, so that versions are in the
	// shard's order. The Racing ones after them are judged by agreement alone.
	Ordered int `json:"ordered"`
	Racing  int `json:"racing"`

	// Owners are the shards of the keys.
	Owners []int `json:"owners"`

	// Moving are the keys that are on the spare shard while there is that.
	Moving []int `json:"moving,omitempty"`

	Bounds Bounds `json:"bounds"`
}

// Bounds are how long a read may give what was overwritten, and an operation may
// last after its deadline.
type Bounds struct {
	Lost   time.Duration `json:"lost"`   // after lost messages, silent listeners, and undisturbed
	Cut    time.Duration `json:"cut"`    // while some process is cut off from a shard that others reach
	Detect time.Duration `json:"detect"` // until a shard that is gone counts as out
	Margin time.Duration `json:"margin"` // after a deadline
}

// A Kind is what an operation does.
type Kind string

const (
	Set        Kind = "set"        // stores the version that the source of truth has
	Invalidate Kind = "invalidate" // deletes; the source has the version
	Remove     Kind = "remove"     // deletes; the source has nothing any more
	Get        Kind = "get"
	Load       Kind = "load" // reads, and asks the source for what is not there
	Many       Kind = "many" // one key of a read of many
	LoadMany   Kind = "load-many"
)

// Kinds are all kinds of operations.
var Kinds = []Kind{Set, Invalidate, Remove, Get, Load, Many, LoadMany}

// Write reports whether the operation changes the key.
func (k Kind) Write() bool { return k == Set || k == Invalidate || k == Remove }

// claims reports whether an absent key is the source's word, which may be too old.
func (k Kind) claims() bool { return k == Load || k == LoadMany }

// An Outcome is how an operation ended.
type Outcome string

const (
	OK      Outcome = "ok"
	Absent  Outcome = "absent"  // a read found nothing
	Refused Outcome = "refused" // a write that took no effect, and says so
	Unknown Outcome = "unknown" // an error: a write may have taken effect until its deadline
	Begun   Outcome = "begun"   // a write of which nothing more is known
)

// An Op is one operation on one key. A write is recorded when it begins, and again
// when it ends.
type Op struct {
	Kind     Kind    `json:"op"`
	Process  int     `json:"process"`
	Life     int     `json:"life"` // of the process, which may be killed and started again
	Key      int     `json:"key"`
	Version  uint64  `json:"version,omitempty"`  // written or read; those of a key are unique
	Loaded   bool    `json:"loaded,omitempty"`   // the value read came from the source, not by a Set
	Foreign  string  `json:"foreign,omitempty"`  // a value read that nobody wrote there
	Final    bool    `json:"final,omitempty"`    // read after all had come to rest
	Begin    int64   `json:"begin"`              // before the call
	End      int64   `json:"end,omitempty"`      // after it
	Deadline int64   `json:"deadline,omitempty"` // of the call
	Outcome  Outcome `json:"outcome"`
	Error    string  `json:"error,omitempty"`
}

// A Fault is a step of the schedule, as it was carried out.
type Fault struct {
	Step
	Begin int64  `json:"begin"` // before it
	End   int64  `json:"end"`   // after it was undone
	Error string `json:"error,omitempty"`
}

// A Pause is a time in which a process did not run, whatever the reason.
type Pause struct {
	Process int   `json:"process"`
	Begin   int64 `json:"begin"`
	End     int64 `json:"end"`
}

// A ShardEvent is a process's change of mind about a shard.
type ShardEvent struct {
	Process int   `json:"process"`
	Shard   int   `json:"shard"`
	Healthy bool  `json:"healthy"`
	At      int64 `json:"at"`
}

// An Incident is what must not happen to a process: it ended by itself, did not
// end, or left something behind.
type Incident struct {
	Kind    string `json:"kind"` // "crash", "hang", "leak"
	Process int    `json:"process"`
	Life    int    `json:"life"`
	At      int64  `json:"at"`
	Text    string `json:"text"`
}

// Counts are of a process that lived to the end.
type Counts struct {
	Process   int    `json:"process"`
	Life      int    `json:"life"`
	Copied    uint64 `json:"copied"`    // reads that copies of hot keys answered
	Inherited uint64 `json:"inherited"` // misses that the shard before answered
}

// A line is one line of a history's file: one of these.
type line struct {
	Header   *Header     `json:"header,omitempty"`
	Op       *Op         `json:"op,omitempty"`
	Fault    *Fault      `json:"fault,omitempty"`
	Pause    *Pause      `json:"pause,omitempty"`
	Shard    *ShardEvent `json:"shard,omitempty"`
	Incident *Incident   `json:"incident,omitempty"`
	Counts   *Counts     `json:"counts,omitempty"`

	// Of processes, not kept in files.
	Owners []int  `json:"owners,omitempty"`
	Moving []int  `json:"moving,omitempty"`
	Did    string `json:"did,omitempty"`
}

func (h *History) add(l *line) {
	switch {
	case l.Header != nil:
		h.Header = *l.Header
	case l.Op != nil:
		h.Ops = append(h.Ops, *l.Op)
	case l.Fault != nil:
		h.Faults = append(h.Faults, *l.Fault)
	case l.Pause != nil:
		h.Pauses = append(h.Pauses, *l.Pause)
	case l.Shard != nil:
		h.Shards = append(h.Shards, *l.Shard)
	case l.Incident != nil:
		h.Incidents = append(h.Incidents, *l.Incident)
	case l.Counts != nil:
		h.Counts = append(h.Counts, *l.Counts)
	}
}

// Write writes the history as lines of JSON, compressed by gzip.
func (h *History) Write(w io.Writer) error {
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	out := json.NewEncoder(z)
	err := out.Encode(line{Header: &h.Header})
	each := func(l line) {
		if err == nil {
			err = out.Encode(l)
		}
	}
	for i := range h.Faults {
		each(line{Fault: &h.Faults[i]})
	}
	for i := range h.Pauses {
		each(line{Pause: &h.Pauses[i]})
	}
	for i := range h.Shards {
		each(line{Shard: &h.Shards[i]})
	}
	for i := range h.Incidents {
		each(line{Incident: &h.Incidents[i]})
	}
	for i := range h.Counts {
		each(line{Counts: &h.Counts[i]})
	}
	for i := range h.Ops {
		each(line{Op: &h.Ops[i]})
	}
	if err = errors.Join(err, z.Close()); err != nil {
		return fmt.Errorf("soak: write a history: %w", err)
	}
	return nil
}

// ReadHistory reads what Write wrote.
func ReadHistory(r io.Reader) (*History, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("soak: read a history: %w", err)
	}
	h := &History{}
	in := json.NewDecoder(bufio.NewReader(z))
	for n := 1; ; n++ {
		var l line
		err := in.Decode(&l)
		switch {
		case err == io.EOF && n > 1:
			return h, nil
		case err != nil:
			return nil, fmt.Errorf("soak: read a history: line %d: %w", n, err)
		case n == 1 && l.Header == nil:
			return nil, errors.New("soak: read a history: it does not begin with a header")
		}
		h.add(&l)
	}
}
