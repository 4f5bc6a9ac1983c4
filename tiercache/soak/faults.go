package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shardkit/shardkit/harness"
)

// carryOut does what a step says, waits, and undoes it. Faults are undone also
// where ctx ends.
func (r *run) carryOut(ctx context.Context, s Step) (err error) {
	if s.Kind == Old {
		// What is written from here on is lost.
		if err := r.node(s).Save(ctx); err != nil {
			return err
		}
		sleep(ctx, s.Delay)
	}
	f := &Fault{Step: s, Begin: monotonic()}
	r.underway(s, true)
	defer func() {
		r.underway(s, false)
		f.End = monotonic()
		if err != nil {
			f.Error = err.Error()
		}
		r.take(&line{Fault: f})
	}()
	begin, end := r.fault(ctx, s)
	began := time.Now()
	if err := begin(); err != nil {
		return err
	}
	sleep(ctx, s.For-time.Since(began))
	return end()
}

func (r *run) node(s Step) *harness.Node { return r.shards.Nodes()[s.Shard] }

func (r *run) routesOf(s Step) []*harness.Route {
	var routes []*harness.Route
	for p := range r.routes {
		if s.Process < 0 || s.Process == p {
			routes = append(routes, r.routes[p][s.Shard])
		}
	}
	return routes
}

func nothing() error { return nil }

// fault returns how a step begins, and how it ends.
func (r *run) fault(ctx context.Context, s Step) (begin, end func() error) {
	undone := context.WithoutCancel(ctx)
	network := func(do func(*harness.Route) error) (begin, end func() error) {
		each := func(do func(*harness.Route) error) func() error {
			return func() error {
				var errs []error
				for _, route := range r.routesOf(s) {
					errs = append(errs, do(route))
				}
				return errors.Join(errs...)
			}
		}
		return each(do), each((*harness.Route).Mend)
	}
	command := func(words ...string) func() error {
		return func() error {
			_, err := r.node(s).Do(undone, words...)
			return err
		}
	}
	switch s.Kind {
	case Kill, Restart:
		return r.node(s).Kill, func() error { return r.node(s).Restart(undone, harness.Empty) }
	case Old:
		return r.node(s).Kill, func() error { return r.node(s).Restart(undone, harness.WithData) }
	case Freeze:
		return r.node(s).Freeze, r.node(s).Thaw
	case Flap:
		return func() error { return r.flap(ctx, s) }, nothing
	case Cut:
		return network((*harness.Route).Cut)
	case Stall:
		return network((*harness.Route).Stall)
	case Slow:
		return network(func(route *harness.Route) error { return route.Slow(s.Delay) })
	case Swallow:
		return network(func(route *harness.Route) error {
			return route.Swallow(func(m []byte) bool { return isNotice(m) && rand.Float64() < s.Part })
		})
	case Deafen:
		return network(func(route *harness.Route) error { return route.Swallow(isNotice) })
	case Drop:
		return command("CLIENT", "KILL", "TYPE", "pubsub"), nothing
	case Flush:
		return command("FLUSHALL"), nothing
	case Replica:
		return command("REPLICAOF", "127.0.0.1", "1"), command("REPLICAOF", "NO", "ONE")
	case Memory:
		m := &memory{node: r.node(s), policy: s.Policy}
		return func() error { return m.fill(undone) }, func() error { return m.free(undone) }
	case Join:
		return func() error { return r.members(ctx, s, "join", true) }, nothing
	case Leave:
		return func() error { return r.members(ctx, s, "leave", false) }, nothing
	case KillProc:
		return func() error { r.process(s.Process).kill(); return nil },
			func() error { return r.startAgain(ctx, s.Process) }
	case StopProc:
		signal := func(send func(*os.Process) error) func() error {
			return func() error {
				if err := send(r.process(s.Process).cmd.Process); !errors.Is(err, os.ErrProcessDone) {
					return err
				}
				return nil // it ended by itself, which has been told
			}
		}
		return signal(stop), signal(cont)
	}
	return func() error { return fmt.Errorf("soak: there is no fault %q", s.Kind) }, nothing
}

// flap freezes and thaws within the step's time, and takes it all.
func (r *run) flap(ctx context.Context, s Step) error {
	part := s.For / time.Duration(2*s.Times)
	for range s.Times {
		if err := r.node(s).Freeze(); err != nil {
			return err
		}
		sleep(ctx, part)
		if err := r.node(s).Thaw(); err != nil {
			return err
		}
		sleep(ctx, part)
	}
	return nil
}

// members has all processes change which shards there are, one after the other within
// the step's time.
func (r *run) members(ctx context.Context, s Step, word string, joined bool) error {
	began, errs := time.Now(), make([]error, r.opts.Processes)
	apart := s.For / time.Duration(max(1, r.opts.Processes-1))
	var wg sync.WaitGroup
	for i, number := range rand.New(rand.NewPCG(r.opts.Seed, uint64(s.At))).Perm(r.opts.Processes) {
		wg.Go(func() {
			sleep(ctx, time.Until(began.Add(time.Duration(i)*apart)))
			for ctx.Err() == nil {
				p := r.process(number)
				err := p.order(ctx, word)
				if err == nil {
					r.mu.Lock()
					r.joined[number] = joined
					r.mu.Unlock()
				}
				if errors.Is(err, errGone) && p.wasKilled() {
					sleep(ctx, 10*time.Millisecond) // it is started again
					continue
				}
				if !errors.Is(err, errGone) {
					errs[number] = err
				}
				return
			}
			errs[number] = context.Cause(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// isNotice reports whether a message from the server was published.
func isNotice(m []byte) bool {
	return bytes.Contains(m[:min(len(m), 32)], []byte("\r\nmessage\r\n"))
}

// memory fills a shard's memory with keys of its own.
type memory struct {
	node   *harness.Node
	policy string
	stop   chan struct{}
	done   chan error
}

const junk = "junk:"

func (m *memory) fill(ctx context.Context) error {
	info, err := m.node.Do(ctx, "INFO", "memory")
	if err != nil {
		return err
	}
	text, _ := info.(string)
	_, text, _ = strings.Cut(text, "used_memory:")
	text, _, _ = strings.Cut(text, "\r\n")
	used, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("soak: INFO memory: %w", err)
	}
	if _, err := m.node.Pipeline(ctx, []string{"CONFIG", "SET", "maxmemory-policy", m.policy}, []string{"CONFIG", "SET", "maxmemory", strconv.Itoa(used + 1<<20)}); err != nil {
		return err
	}
	m.stop, m.done = make(chan struct{}), make(chan error, 1)
	go func() {
		value := strings.Repeat("x", 16<<10)
		for n := 0; ; n++ {
			cmds := make([][]string, 16)
			for i := range cmds {
				cmds[i] = []string{"SET", junk + strconv.Itoa(16*n+i), value}
			}
			if _, err := m.node.Pipeline(ctx, cmds...); err != nil { // a refusal is none
				m.done <- err
				return
			}
			select {
			case <-m.stop:
				m.done <- nil
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return nil
}

func (m *memory) free(ctx context.Context) error {
	if m.stop == nil {
		return nil
	}
	close(m.stop)
	if err := <-m.done; err != nil {
		return err
	}
	_, err := m.node.Pipeline(ctx,
		[]string{"CONFIG", "SET", "maxmemory", "0"},
		[]string{"CONFIG", "SET", "maxmemory-policy", "noeviction"},
		[]string{"EVAL", "for _, k in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('UNLINK', k) end", "0", junk + "*"})
	return err
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
