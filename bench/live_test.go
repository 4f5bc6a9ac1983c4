package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// wire is a variant that sends the same bytes and waits for the same answer, over one connection per worker.
func wire(name, addr, request, answer string) Variant {
	return Variant{Name: name, Setup: func(_ context.Context, workers int) (*Subject, error) {
		var conns []net.Conn
		closeAll := func(context.Context) error {
			var errs []error
			for _, c := range conns {
				errs = append(errs, c.Close())
			}
			return errors.Join(errs...)
		}
		worker := func(int) (Op, error) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				return nil, err
			}
			conns = append(conns, c)
			rd, got := bufio.NewReader(c), make([]byte, len(answer))
			return func(ctx context.Context) error {
				if _, err := io.WriteString(c, request); err != nil {
					return err
				}
				if _, err := io.ReadFull(rd, got); err != nil {
					return err
				}
				if string(got) != answer {
					return fmt.Errorf("got %q, want %q", got, answer)
				}
				return nil
			}, nil
		}
		return &Subject{Kinds: []Kind{{Name: "op", Worker: worker}}, TearDown: closeAll}, nil
	}}
}

func TestAgainstARealServer(t *testing.T) {
	shards := harnesstest.Shards(t, harness.Options{Shards: 1, Private: true})
	node := shards.Nodes()[0]
	ping := wire("ping", node.Addr(), "*1\r\n$4\r\nPING\r\n", "+PONG\r\n")
	set := wire("set", node.Addr(), "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n", "+OK\r\n")

	t.Run("counters", func(t *testing.T) {
		info := &RedisInfo{Addrs: []string{node.Addr()}}
		defer info.Close()
		s := Scenario{Name: "wire", Variants: []Variant{ping, set}}
		r := mustRun(t, s, &Options{Load: Load{Ops: 300, SkipWarmUp: true}, Counters: info})
		for variant, want := range map[string][4]float64{"ping": {1, 14, 7, 1}, "ping'": {1, 14, 7, 1}, "set": {1, 31, 5, 1}} {
			c := r.Variant(variant).Counters
			if got := [4]float64{c[RedisCommands], c[RedisBytesIn], c[RedisBytesOut], c[RedisReads]}; got != want {
				t.Errorf("%s: got %v commands, bytes in, bytes out and reads per operation, want %v", variant, got, want)
			}
		}
		if len(r.Marks) != 0 {
			t.Errorf("marks: %v", r.Marks)
		}
	})

	t.Run("frozen", func(t *testing.T) {
		type outcome struct {
			r   *Result
			err error
		}
		run := func(l Load) <-chan outcome {
			l.Duration, l.SkipWarmUp = 3500*time.Millisecond, true
			ch := make(chan outcome, 1)
			go func() {
				r, err := Run(t.Context(), Scenario{Name: "wire", Variants: []Variant{ping}}, &Options{Load: l, SkipCounters: true})
				ch <- outcome{r, err}
			}()
			return ch
		}
		// Both at once: they stand before the same frozen server.
		open, closed := run(Load{Mode: Open, Rate: 1000}), run(Load{})
		time.Sleep(time.Second)
		frozen := time.Now()
		if err := node.Freeze(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := node.Thaw(); err != nil {
			t.Error(err)
		}
		stall := time.Since(frozen)
		o, c := <-open, <-closed
		if o.err != nil || c.err != nil {
			t.Fatal(o.err, c.err)
		}
		l := o.r.Variants[0].Response
		if l.Count != 3500 || o.r.Generator.Intended != 3500 || o.r.Variants[0].Errors != 0 {
			t.Errorf("open loop: %d of %d operations, %d errors, want all of 3500", l.Count, o.r.Generator.Intended, o.r.Variants[0].Errors)
		}
		near(t, "open-loop p99.9", l.P999.Seconds(), stall.Seconds(), 0.15)
		// 1000 of 3500 were due meanwhile; a busy machine only adds to what they waited.
		if l.P90 < stall/3 {
			t.Errorf("open-loop p90 is %v, want at least a third of the %v that the server was frozen", l.P90, stall)
		}
		l = c.r.Variants[0].Response
		if l.P999 > stall/3 {
			t.Errorf("closed-loop p99.9 is %v, want it to hide the %v that the server was frozen", l.P999, stall)
		}
		near(t, "closed-loop maximum", l.Max.Seconds(), stall.Seconds(), 0.15)
	})
}
