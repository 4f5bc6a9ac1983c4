package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/shardkit/shardkit/bench"
)

func publishParts() []Part {
	var parts []Part
	for _, p := range []struct {
		content
		long  bool
		takes time.Duration
	}{
		{content{size: 20}, false, 4 * time.Second},
		{content{size: 100}, false, 5 * time.Second},
		{content{size: 200}, false, 6 * time.Second},
		{content{size: 200, integers: true}, false, 5 * time.Second},
		{content{size: 500}, true, 15 * time.Second},
		{content{size: 2000}, true, 60 * time.Second},
	} {
		parts = append(parts, Part{
			Name: "publish-" + p.String(), Doc: fmt.Sprintf("%s into each of 16384 slots", p.words()),
			Long: p.long, metric: "response_p50", takes: p.takes, slice: 1, count: 1,
			run: func(ctx context.Context, s *stage) (*bench.Result, error) { return publish(ctx, s, p.content) },
		})
	}
	return parts
}

// publish lets all variants write the same replicas in turn: what a write finds and frees is then the same for all, and
// the servers need the memory once. Pipelines leave the stamps beside the replicas alone, and write what is stamped.
func publish(ctx context.Context, s *stage, c content) (res *bench.Result, err error) {
	name := s.prefix
	defer s.clean(ctx, &err, func(ctx context.Context) error { return s.target.removeReplicas(ctx, name) })
	turn := newTurns(c)
	writers, err := s.publishers(ctx, name, c, turn)
	if err != nil {
		return nil, err
	}
	routed, err := newByClient(ctx, s.target, name)
	if err != nil {
		return nil, err
	}
	byClient := func(ctx context.Context) error { return routed.publish(ctx, turn.boxed[turn.next()]) }
	writers = append(writers, writer{name: byRoute, setUp: byClient, write: byClient, wrote: turn.wrote(name)})
	sets, of, err := s.others(name)
	if err != nil {
		return nil, err
	}
	for i, set := range sets {
		publish := func(ctx context.Context) error { return set.Publish(ctx, turn.members[turn.next()]) }
		writers = append(writers, writer{name: of[i].of(ours), setUp: publish, write: publish, wrote: turn.wrote(name)})
	}
	peers := s.startPeers(ctx, name)
	defer peers.close(ctx)
	for _, p := range peers.running {
		writers = append(writers, p.publisher(name, turn))
	}
	res, err = s.write(ctx, bench.Options{Load: s.opts.load(2*time.Second, 20*time.Second)}, writers)
	peers.mark(res)
	return res, err
}

// turns hands out the two versions of a content.
type turns struct {
	members [2][]string
	boxed   [2][]any
	n       int
}

func newTurns(c content) *turns {
	t := &turns{}
	for v := range t.members {
		t.members[v] = c.version(v)
		t.boxed[v] = boxed(t.members[v])
	}
	return t
}

// next returns the version to write. Only one write is under way at a time.
func (t *turns) next() int {
	t.n++
	return t.n % 2
}

func (t *turns) wrote(name string) func() (string, []string) {
	return func() (string, []string) { return name, t.members[t.n%2] }
}

// publishers returns both ways to replace the set of that name.
func (s *stage) publishers(ctx context.Context, name string, c content, t *turns) ([]writer, error) {
	set, err := s.newSet(name)
	if err != nil {
		return nil, err
	}
	pipelines, err := newByHand(ctx, s.target, name)
	if err != nil {
		return nil, err
	}
	publish := func(ctx context.Context) error { return set.Publish(ctx, t.members[t.next()]) }
	byPipelines := func(ctx context.Context) error { return pipelines.publish(ctx, t.boxed[t.next()]) }
	return []writer{
		{name: ours, setUp: publish, write: publish, wrote: t.wrote(name)},
		{name: byHand, setUp: byPipelines, write: byPipelines, wrote: t.wrote(name)},
	}, nil
}
