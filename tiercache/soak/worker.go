package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// workerEnv holds the config of a process that is to be a worker.
const workerEnv = "SHARDKIT_SOAK_WORKER"

// A config is what a worker is told when it starts.
type config struct {
	Process, Life, Processes int
	Seed                     uint64
	Subject, Client          string
	Addrs                    map[string]string // of the shards, for this process, by name
	Spare                    string            // the shard of them that may be added
	Joined                   bool              // it was
	Ordered, Racing          int
	Heartbeat, Loader        time.Duration
	Rate                     float64
	Margin                   time.Duration
}

// timeout is that of one call to a shard.
func (c *config) timeout() time.Duration { return c.Heartbeat / 2 }

// Main makes this program one of the processes of a Run if it was started as
// that, and then does not return. Call it first in main, and in TestMain.
func Main() {
	text, found := os.LookupEnv(workerEnv)
	if !found {
		return
	}
	if err := work(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A worker is a process of a run. It takes words on its standard input, and writes
// lines of a history on its standard output, each in one piece: what it has
// written is there even if it is killed.
type worker struct {
	config
	subject subject
	truth   []atomic.Uint64 // for each key, version << 1, and 1 if the version is a removal
	turns   time.Duration   // how long it is a process's turn to write a key

	lately [4]atomic.Uint32 // the keys that this process wrote last, of those in order
	wrote  atomic.Uint32    // how many it wrote

	start  time.Time // the moment of startAt
	origin int64

	out    sync.Mutex
	stop   chan struct{}
	ticked atomic.Int64 // when pauses was last in time; 0 while it does not look
	wg     sync.WaitGroup
}

func work(text string) error {
	logging.Disable()
	w := &worker{start: time.Now(), origin: monotonic(), stop: make(chan struct{})}
	if err := json.Unmarshal([]byte(text), &w.config); err != nil {
		return fmt.Errorf("soak: a process's config: %w", err)
	}
	orders := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			orders <- in.Text()
		}
		os.Exit(1) // whoever started this is gone
	}()
	var err error
	if w.truth, err = mapTruth(w.Ordered + w.Racing); err != nil {
		return err
	}
	w.turns = 2 * w.Heartbeat
	before := runtime.NumGoroutine()
	if w.subject, err = open(&w.config); err != nil {
		return fmt.Errorf("soak: open %s: %w", w.Subject, err)
	}
	owners, moving := w.places()
	w.emit(line{Owners: owners, Moving: moving, Did: "ready"})
	for order := range orders {
		switch order {
		case "start":
			w.begin()
		case "join":
			w.members(w.subject.Join)
		case "leave":
			w.members(w.subject.Leave)
		case "stop":
			close(w.stop)
			w.await()
		case "final":
			read := make(chan struct{})
			w.wg.Go(func() { w.pauses(read) })
			for key := range w.truth {
				w.get(key, true)
			}
			close(read)
			w.await()
		case "close":
			copied, inherited := w.subject.Counts()
			w.emit(line{Counts: &Counts{w.Process, w.Life, copied, inherited}})
			if err := w.subject.Close(); err != nil {
				return fmt.Errorf("soak: close: %w", err)
			}
			w.leaks(before)
			w.emit(line{Did: order})
			return nil
		}
		w.emit(line{Did: order})
	}
	return nil
}

// members changes which shards there are, and tries again as long as that fails: some
// shard may be away.
func (w *worker) members(change func(context.Context) error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), w.patience())
		err := change(ctx)
		cancel()
		if err == nil {
			return
		}
		time.Sleep(w.Heartbeat / 10)
	}
}

// places tells which shard each key is on without the spare one, and which are on that
// one.
func (w *worker) places() (owners, moving []int) {
	owner := w.subject.Owner()
	for key := range w.truth {
		usual, spared := owner(keyName(key))
		owners = append(owners, shardNumber(usual))
		if spared {
			moving = append(moving, key)
		}
	}
	return owners, moving
}

// shardNumber is the number of the shard that package harness calls so, from 0.
func shardNumber(name string) int {
	n := 0
	fmt.Sscanf(name, "shard-%d", &n)
	return n - 1
}

// health tells when this process begins or ends to use a shard.
func (w *worker) health() {
	last := map[string]bool{}
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-w.stop:
			tick.Stop()
			return
		case <-tick.C:
		}
		for name, healthy := range w.subject.Health() {
			if before, known := last[name]; known && before != healthy {
				w.emit(line{Shard: &ShardEvent{w.Process, shardNumber(name), healthy, monotonic()}})
			}
			last[name] = healthy
		}
	}
}

func (w *worker) emit(l line) {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	w.out.Lock()
	defer w.out.Unlock()
	os.Stdout.Write(append(b, '\n'))
}

func (w *worker) incident(kind, format string, args ...any) {
	w.emit(line{Incident: &Incident{kind, w.Process, w.Life, monotonic(), fmt.Sprintf(format, args...)}})
}

// await waits until no operation is under way, for as long as one may last.
func (w *worker) await() {
	done := make(chan struct{})
	go func() {
		w.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(w.patience() + w.Margin + 5*time.Second):
		w.incident("hang", "operations do not end:\n%s", stacks())
	}
}

// leaks tells what goroutines are left when the subject is closed.
func (w *worker) leaks(before int) {
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.incident("leak", "%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks())
			return
		}
	}
}

func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// A goroutine that is so late did not run because the process did not.
const (
	tickOften = 10 * time.Millisecond
	tickLate  = 50 * time.Millisecond
)

// pauses tells until stop when this process does not run, by a goroutine that is late.
func (w *worker) pauses(stop <-chan struct{}) {
	w.ticked.Store(monotonic())
	defer w.ticked.Store(0)
	for tick := time.NewTicker(tickOften); ; {
		select {
		case <-stop:
			tick.Stop()
			return
		case <-tick.C:
		}
		now := monotonic()
		w.paused(now)
		w.ticked.Store(now)
	}
}

// paused tells that this process did not run until now, if that is so.
func (w *worker) paused(now int64) {
	if last := w.ticked.Load(); last != 0 && now-last > int64(tickLate) {
		w.emit(line{Pause: &Pause{w.Process, last, now}})
	}
}

// patience is the deadline of a read.
func (w *worker) patience() time.Duration { return 2 * w.Heartbeat }

// context ends at the given moment of the monotonic clock.
func (w *worker) context(deadline int64) (context.Context, context.CancelFunc) {
	return context.WithDeadline(context.Background(), w.start.Add(time.Duration(deadline-w.origin)))
}

// outcome judges an operation's error.
func (w *worker) outcome(op *Op, err error) {
	switch {
	case err == nil:
		op.Outcome = OK
	case !op.Kind.Write() && isAbsent(err):
		op.Outcome = Absent
	default:
		op.Outcome = Unknown
		if op.Kind.Write() && w.subject.Refused(err) {
			op.Outcome = Refused
		}
		op.Error = strings.ToValidUTF8(err.Error()[:min(len(err.Error()), 160)], "?")
	}
}

// took notes which version a value is.
func (op *Op) took(value string) {
	var key int
	var version uint64
	var from string
	if n, err := fmt.Sscanf(value, "%d %d %s", &key, &version, &from); n != 3 || err != nil || key != op.Key {
		op.Foreign = strings.ToValidUTF8(value[:min(len(value), 80)], "?")
		if op.Foreign == "" {
			op.Foreign = "(empty)"
		}
		return
	}
	op.Version, op.Loaded = version, from == "loaded"
}

func stored(key int, version uint64) string { return fmt.Sprintf("%d %d stored", key, version) }

func loaded(key int, version uint64) string { return fmt.Sprintf("%d %d loaded", key, version) }

var errNoTurn = errors.New("soak: another process has written meanwhile")
