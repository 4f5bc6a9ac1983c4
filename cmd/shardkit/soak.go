package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/shardkit/shardkit/tiercache/soak"
)

type soakCmd struct {
	Duration  time.Duration    `help:"How long, without the moments of rest." default:"1m"`
	Round     time.Duration    `help:"After so long all is new, and the seed is the next one." default:"1m"`
	Seed      uint64           `help:"Repeats a schedule of faults." placeholder:"N"`
	Shards    int              `help:"Number of Redis servers." default:"3"`
	Processes int              `help:"Number of processes with a cache." default:"4"`
	Client    string           `help:"Client under the cache: goredis, rueidis, or mixed." enum:"goredis,rueidis,mixed" default:"mixed"`
	Faults    []soak.FaultKind `help:"What may happen: kill, restart, old, freeze, flap, cut, stall, slow, swallow, deafen, drop, memory, flush, replica, join, leave, killproc, stopproc; all by default." placeholder:"NAME"`
	Rate      float64          `help:"Operations a second that each process begins." default:"300"`
	Margin    time.Duration    `help:"By how much an operation may outlast its deadline; by default half a heartbeat, 500ms at least." placeholder:"TIME"`
	Heartbeat time.Duration    `help:"The caches' heartbeat, and the measure of all other times." default:"1s"`
	Server    string           `help:"Server binary; by default $$SHARDKIT_SERVER, redis-server or valkey-server." placeholder:"FILE"`
	Compare   bool             `help:"Have go-redis's Ring with a local cache go through the same, and set it beside."`
	Plan      bool             `help:"Print the schedule of the first round, and do nothing."`
	History   string           `help:"Write the history here: of the first round that violates something, or of the last." placeholder:"FILE"`
	Replay    string           `help:"Judge this history, without servers." placeholder:"FILE"`
	JSON      bool             `name:"json" help:"Print the reports as JSON." xor:"output"`
	Markdown  bool             `help:"Print the tables as Markdown." xor:"output"`
}

func (soakCmd) Help() string {
	return `Processes with a cache write, read, delete and load, while shards and processes are killed, frozen, cut off, slowed, emptied, restored and
filled. All they did and saw is recorded, and judged: no read may give what was overwritten or deleted longer ago than the cache's bounds, no
operation may outlast its deadline, and at rest all must agree.

Exit codes: 0 nothing was violated, 1 something was, 2 nothing is known, as it could not be run.

Examples:
  shardkit soak --duration 10m
  shardkit soak --duration 1h --compare --markdown > soak.md
  shardkit soak --seed 42 --faults kill,freeze,swallow --history history.jsonl.gz
  shardkit soak --replay history.jsonl.gz`
}

// Validate reports what is wrong with the command line.
func (c *soakCmd) Validate() error {
	if c.Duration <= 0 || c.Round <= 0 {
		return errors.New("--duration and --round must be more than 0")
	}
	if _, err := soak.Plan(c.options(c.Duration, soak.Tiercache)); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), soak.ErrOptions.Error()+": ")) // the command says whose
	}
	return nil
}

func (c *soakCmd) options(duration time.Duration, subject string) *soak.Options {
	return &soak.Options{
		Seed: c.Seed, Duration: duration, Shards: c.Shards, Processes: c.Processes, Subject: subject, Client: c.Client,
		Faults: c.Faults, Rate: c.Rate, Margin: c.Margin, Heartbeat: c.Heartbeat, Server: c.Server,
	}
}

func (c soakCmd) Run(ctx context.Context, con console) error {
	if c.Replay != "" {
		return c.replay(con)
	}
	if c.Seed == 0 {
		c.Seed = 1 + rand.Uint64N(1<<32)
	}
	if c.Plan {
		steps, err := soak.Plan(c.options(min(c.Duration, c.Round), soak.Tiercache))
		for _, s := range steps {
			fmt.Fprintln(con.out, s)
		}
		return err
	}
	subjects := []string{soak.Tiercache}
	if c.Compare {
		subjects = append(subjects, soak.RingCache)
	}
	reports := make([]*soak.Report, len(subjects))
	watch := newBenchWatch(con)
	rounds := int((c.Duration + c.Round - 1) / c.Round)
	var runErr error
	for round := 0; round < rounds && runErr == nil; round++ {
		for i, subject := range subjects {
			o := c.options(min(c.Round, c.Duration-time.Duration(round)*c.Round), subject)
			o.Seed += uint64(round)
			where := fmt.Sprintf("%s, round %d of %d, seed %d", subject, round+1, rounds, o.Seed)
			if watch.terminal {
				o.Progress = func(p soak.Progress) { watch.draw(soakLine(where, p)) }
			}
			h, err := soak.Run(ctx, o)
			watch.end()
			if h == nil || err != nil && ctx.Err() == nil {
				runErr = fmt.Errorf("seed %d: %w", o.Seed, err)
				break
			}
			runErr = err
			r := soak.Check(h)
			fmt.Fprintf(con.err, "%s: %d operations, %d faults, %d reads beyond the bound, %d violations\n", where, len(h.Ops), len(h.Faults), r.Beyond, r.Violated)
			if i == 0 && c.keeps(reports[0], r, round+1 == rounds) {
				if err := c.write(con, h); err != nil {
					return err
				}
			}
			if reports[i] == nil {
				reports[i] = r
			} else {
				reports[i].Add(r)
			}
			if runErr != nil {
				break
			}
		}
	}
	if reports[0] == nil {
		return exitWith{exitInconclusive, runErr}
	}
	if len(reports) > 1 && reports[1] == nil {
		reports = reports[:1]
	}
	return c.conclude(con, runErr, reports)
}

// keeps reports whether the round's history is to be kept.
func (c *soakCmd) keeps(before, round *soak.Report, last bool) bool {
	if before != nil && !before.OK() {
		return false
	}
	return !round.OK() || c.History != "" && last
}

func (c *soakCmd) write(con console, h *soak.History) error {
	path := c.History
	if path == "" {
		path = filepath.Join(os.TempDir(), fmt.Sprintf("shardkit-soak-%d.jsonl.gz", h.Header.Seed))
	}
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(h.Write(f), f.Close())
	}
	if err != nil {
		return exitWith{exitInconclusive, fmt.Errorf("--history: %w", err)}
	}
	fmt.Fprintf(con.err, "history of seed %d: %s\n", h.Header.Seed, path)
	return nil
}

func (c *soakCmd) replay(con console) error {
	f, err := os.Open(c.Replay)
	if err != nil {
		return exitWith{exitInconclusive, fmt.Errorf("--replay: %w", err)}
	}
	defer f.Close()
	h, err := soak.ReadHistory(f)
	if err != nil {
		return exitWith{exitInconclusive, fmt.Errorf("--replay: %w", err)}
	}
	return c.conclude(con, nil, []*soak.Report{soak.Check(h)})
}

// conclude prints what was found.
func (c *soakCmd) conclude(con console, runErr error, reports []*soak.Report) error {
	var err error
	switch {
	case c.JSON:
		err = json.NewEncoder(con.out).Encode(reports)
	case c.Markdown:
		err = soak.WriteMarkdown(con.out, reports...)
	default:
		err = soak.WriteText(con.out, reports...)
	}
	if n := reports[0].Violated; n > 0 {
		again := fmt.Sprintf("shardkit soak --seed %d --duration %v --round %v", reports[0].Header.Seed, c.Duration, c.Round)
		return errors.Join(fmt.Errorf("soak: %d violations; %s goes through the same again", n, again), runErr, err)
	}
	if err = errors.Join(runErr, err); err != nil {
		return exitWith{exitInconclusive, err}
	}
	return nil
}

func soakLine(where string, p soak.Progress) string {
	filled := int(barWidth * float64(p.Elapsed) / float64(p.Duration))
	var now []string
	for _, s := range p.Now {
		now = append(now, fmt.Sprintf("%s %d", s.Kind, max(s.Shard, s.Process)+1))
	}
	doing := strings.Join(now, ", ")
	if p.Settling {
		doing = "coming to rest"
	}
	return fmt.Sprintf("  [%s%s] %s: %s operations, %d faults; %s", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), where, thousands(p.Ops), p.Faults, doing)
}
