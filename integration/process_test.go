package integration

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// writerJob is what a writing process is told, in its environment.
type writerJob struct {
	Addrs  []string
	Client string
	Name   string
	Seed   uint64
	Millis int64
	Slots  int           // so many over all masters; 0 is all
	Pause  time.Duration // between two writes, at most
}

func (j writerJob) slots() []uint16 {
	if j.Slots == 0 {
		return all
	}
	return some(j.Slots)
}

const writerVariable = "SHARDKIT_TEST_WRITER"

// A test binary that finds a job in its environment is a writer and no test.
func init() {
	text := os.Getenv(writerVariable)
	if text == "" {
		return
	}
	var job writerJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := job.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// took is a line that a writer prints for each number that its home slot gave.
type took struct {
	Number, Size, Op string
	Add, Remove      []string
}

// run writes at random for the job's time, and prints what took a number.
func (j writerJob) run() error {
	t := &testing.T{} // open's clean-ups are the end of the process
	b, err := clients[slices.IndexFunc(clients, func(c client) bool { return c.name == j.Client })].open(t, j.Addrs, login{})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var history []given
	h := &historian{
		Backend: b, home: slotmap.KeyForSlot(j.Name, slotmap.Slot(j.Name)),
		mu: &mu, given: &history, lossy: func() bool { return false },
	}
	s, err := replset.New(h, j.Name, &replset.Options{Slots: j.slots(), Patience: time.Minute})
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(j.Seed, 1))
	for end := time.Now().Add(time.Duration(j.Millis) * time.Millisecond); time.Now().Before(end); {
		h.current = newRandomWrite(rnd)
		if err := h.current.run(context.Background(), s); err != nil && !errors.Is(err, replset.ErrReplicaMissing) {
			return fmt.Errorf("%+v: %w", h.current, err)
		}
		if j.Pause > 0 {
			time.Sleep(time.Duration(rnd.Int64N(int64(j.Pause)))) // the pace, not a wait for a state
		}
	}
	out := json.NewEncoder(os.Stdout)
	for _, g := range history {
		if err := out.Encode(took{g.number, g.size, g.write.op, g.write.add, g.write.remove}); err != nil {
			return err
		}
	}
	return nil
}

// Eight processes write one set at once, over both clients, while slots move
// back and forth, a node freezes and another's network is slow. In the end all
// replicas hold what the writes give one after another in the order of their
// numbers. With SHARDKIT_LONG=1 they are 16384, and nobody pauses.
func TestEightProcessesConverge(t *testing.T) {
	last := 3 * time.Second
	job := writerJob{Slots: 512, Pause: 150 * time.Millisecond}
	if os.Getenv("SHARDKIT_LONG") == "1" {
		last, job = 30*time.Second, writerJob{}
	}
	c := harnesstest.Cluster(t, harness.Options{Private: true, Proxied: true})
	set := "racing"
	b := open(t, "goredis", c)
	s, err := replset.New(b, set, &replset.Options{Slots: job.slots()})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, s)
	first := strings.Fields(do(t, b, "GET", slotmap.KeyForSlot(set, s.HomeSlot())+stampSuffix).(string))[1]

	start := seed(t)
	var mu sync.Mutex
	history := []given{{number: first, size: "0", write: randomWrite{op: "publish"}}}
	var writers sync.WaitGroup
	for w := range 8 {
		job := job
		job.Addrs, job.Client, job.Name = c.Addrs(), clients[w%len(clients)].name, set
		job.Seed, job.Millis = start+uint64(w), last.Milliseconds()
		text, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerVariable+"="+string(text))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		writers.Go(func() {
			lines := bufio.NewScanner(stdout)
			for lines.Scan() {
				var line took
				if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
					t.Errorf("writer %d: %v", w, err)
					break
				}
				mu.Lock()
				history = append(history, given{line.Number, line.Size, randomWrite{line.Op, line.Add, line.Remove}})
				mu.Unlock()
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("writer %d: %v: %s", w, err, stderr.String())
			}
		})
	}
	trouble(t, c, int(s.HomeSlot()), job.slots(), last)
	writers.Wait()

	slices.SortFunc(history, func(a, b given) int {
		return cmp.Or(cmp.Compare(len(a.number), len(b.number)), cmp.Compare(a.number, b.number))
	})
	var model map[string]bool
	for i, g := range history {
		if i > 0 && g.number == history[i-1].number {
			t.Fatalf("two writes took the number %s: %+v and %+v", g.number, history[i-1].write, g.write)
		}
		model = g.write.on(model)
		size := "-1"
		if model != nil {
			size = strconv.Itoa(len(model))
		}
		if g.size != size {
			t.Fatalf("after %+v the stamp says %s members, one after another they are %s", g.write, g.size, size)
		}
	}
	if model == nil {
		wantCleared(t, b, s, job.slots())
	} else {
		var members []string
		for m := range model {
			members = append(members, m)
		}
		wantReplicas(t, b, s, job.slots(), members...)
	}
	t.Logf("%d writes took a number during %s of %d faults; %s", len(history), last, len(c.Timeline().Events()), c.Provider())
}

// trouble moves slots, freezes one node and slows another, for that long. The
// home slot stays: a reply of its master that is lost would leave a write whose
// number nobody knows.
func trouble(t *testing.T, c *harness.Cluster, home int, slots []uint16, last time.Duration) {
	t.Helper()
	end := time.Now().Add(last)
	owner, other := owners(t, c, home)
	var third *harness.Node
	for _, n := range c.Nodes() {
		if n != owner && n != other {
			third = n
		}
	}
	if err := third.Slow(2 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	pace := time.NewTicker(40 * time.Millisecond)
	defer pace.Stop()
	froze := false
	for i := 0; time.Now().Before(end); i++ {
		slot := int(slots[i%len(slots)])
		if slot == home {
			continue
		}
		for _, to := range []*harness.Node{other, third} {
			if err := c.MoveSlots(t.Context(), to, slot); err != nil {
				t.Fatal(err)
			}
			<-pace.C
		}
		if !froze && time.Until(end) < last/2 {
			froze = true
			if err := other.Freeze(); err != nil {
				t.Fatal(err)
			}
			wait := time.NewTimer(last / 10)
			<-wait.C // the fault's length, not a wait for a state
			if err := other.Thaw(); err != nil {
				t.Fatal(err)
			}
			if err := c.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := third.Mend(); err != nil {
		t.Fatal(err)
	}
}
