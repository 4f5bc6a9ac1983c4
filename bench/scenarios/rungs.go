package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/replset"
)

// Names of the ways in which a set is written, best first.
const (
	byNodeScript  = "node-script"
	byKeyScript   = "key-script"
	byTransaction = "transaction"
)

func rungParts() []Part {
	var parts []Part
	for _, p := range []struct {
		content
		long  bool
		takes time.Duration
	}{
		{content{size: 20}, false, 25 * time.Second},
		{content{size: 200}, true, 90 * time.Second},
	} {
		what := fmt.Sprintf("a set of %s in each of 16384 slots, by each way that servers may allow", p.words())
		parts = append(parts,
			Part{
				Name: "rungs-publish-" + p.String(), Doc: "Publish of " + what,
				Long: p.long, metric: "response_p50", takes: p.takes, slice: 1, count: 1,
				run: func(ctx context.Context, s *stage) (*bench.Result, error) { return rungs(ctx, s, p.content, false) },
			},
			Part{
				Name: "rungs-delta-" + p.String(), Doc: "Apply of 6 members more and 4 less to " + what,
				Long: p.long, metric: "response_p50", takes: p.takes, slice: 2, count: 2,
				run: func(ctx context.Context, s *stage) (*bench.Result, error) { return rungs(ctx, s, p.content, true) },
			},
		)
	}
	return parts
}

// rungs lets three sets of one name, each held to one way of writing, take turns at the same replicas.
func rungs(ctx context.Context, s *stage, c content, delta bool) (res *bench.Result, err error) {
	name := s.prefix
	defer s.clean(ctx, &err, func(ctx context.Context) error { return s.target.removeReplicas(ctx, name) })
	turn, d := newTurns(c), newChange(c)
	var writers []writer
	for _, way := range []struct {
		name    string
		rung    replset.Rung
		backend replset.Backend
	}{
		{byNodeScript, replset.RungNode, s.backend},
		{byKeyScript, replset.RungKey, refusing{s.backend, keyless}},
		{byTransaction, replset.RungTx, refusing{s.backend, scripted}},
	} {
		set, err := replset.New(way.backend, name, &replset.Options{MaxBytes: 64 << 30, Slots: s.target.some})
		if err != nil {
			return nil, err
		}
		if err := set.Publish(ctx, c.version(0)); err != nil {
			return nil, err
		}
		probes, err := set.Probe(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range probes {
			if p.Rung != way.rung {
				return nil, fmt.Errorf("bench: %s writes by %s, where %s is to be measured", p.Addr, p.Rung, way.rung)
			}
		}
		w := writer{name: way.name, wrote: turn.wrote(name), write: func(ctx context.Context) error {
			return set.Publish(ctx, turn.members[turn.next()])
		}}
		if delta {
			w.wrote = d.wrote(name, c.version(0))
			w.write = func(ctx context.Context) error {
				add, remove := d.next()
				return set.Apply(ctx, replset.Delta{Add: add, Remove: remove})
			}
		}
		writers = append(writers, w)
	}
	return s.write(ctx, bench.Options{Load: s.opts.load(10*time.Second, 60*time.Second), Rounds: 5}, writers)
}

// refusing is a backend whose servers refuse some commands, as those of a managed service, or an ACL's, do.
type refusing struct {
	replset.Backend
	refuses func(cmd []string) error
}

func (r refusing) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if err := r.refuses(cmd); err != nil {
		return nil, err
	}
	return r.Backend.Do(ctx, key, cmd)
}

func (r refusing) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	for _, cmd := range cmds {
		if err := r.refuses(cmd); err != nil {
			replies := make([]any, len(cmds))
			for i := range replies {
				replies[i] = err
			}
			return replies
		}
	}
	return r.Backend.Pipeline(ctx, keys, cmds)
}

func script(cmd []string) bool { return cmd[0] == "EVAL" || cmd[0] == "EVALSHA" }

func keyless(cmd []string) error {
	if script(cmd) && len(cmd) > 2 && cmd[2] == "0" {
		return errors.New("ERR a script must declare its keys")
	}
	return nil
}

func scripted(cmd []string) error {
	if script(cmd) {
		return errors.New("NOPERM this user has no permissions to run the 'evalsha' command")
	}
	return nil
}
