package scenarios

import (
	"context"
	"time"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/replset"
)

const (
	deltaAdded   = 6
	deltaRemoved = 4
)

func deltaParts() []Part {
	return []Part{{
		Name: "delta", Doc: "6 members added and 4 removed, in a set of 200 strings of 13 bytes in each of 16384 slots",
		metric: "response_p50", takes: 15 * time.Second, slice: 2, count: 2, run: delta, // a delta and its undoing
	}}
}

// change is a delta, and whether it was applied. Applying it again takes it back: then 4 members are added and 6 removed.
type change struct {
	there, back [2][]string // added, removed
	done        bool
}

func newChange(c content) *change {
	var added, removed []string
	for i := range deltaAdded {
		added = append(added, c.member(900_000+i))
	}
	for i := range deltaRemoved {
		removed = append(removed, c.member(i))
	}
	return &change{there: [2][]string{added, removed}, back: [2][]string{removed, added}}
}

// next returns what to add and what to remove now.
func (d *change) next() (add, remove []string) {
	d.done = !d.done
	if d.done {
		return d.there[0], d.there[1]
	}
	return d.back[0], d.back[1]
}

// of returns the content as the change has left it. The members removed are the first ones of the content.
func (d *change) of(members []string) []string {
	if !d.done {
		return members
	}
	return append(append([]string{}, d.there[0]...), members[deltaRemoved:]...)
}

func (d *change) wrote(name string, members []string) func() (string, []string) {
	return func() (string, []string) { return name, d.of(members) }
}

// writer applies the change, or takes it back, to what lies under a name and held the members at first.
func (d *change) writer(variant, name string, members []string, apply func(ctx context.Context, add, remove []string) error) writer {
	return writer{name: variant, wrote: d.wrote(name, members), write: func(ctx context.Context) error {
		add, remove := d.next()
		return apply(ctx, add, remove)
	}}
}

// delta has a set for each side: the library refuses a replica that changed behind its back, and rightly so.
func delta(ctx context.Context, s *stage) (res *bench.Result, err error) {
	c := content{size: 200}
	members := c.version(0)
	setName, plainName := s.prefix+"a", s.prefix+"b"
	for _, name := range []string{setName, plainName} {
		defer s.clean(ctx, &err, func(ctx context.Context) error { return s.target.removeReplicas(ctx, name) })
	}
	set, err := s.newSet(setName)
	if err != nil {
		return nil, err
	}
	pipelines, err := newByHand(ctx, s.target, plainName)
	if err != nil {
		return nil, err
	}
	routed, err := newByClient(ctx, s.target, plainName)
	if err != nil {
		return nil, err
	}
	if err := set.Publish(ctx, members); err != nil {
		return nil, err
	}
	if err := pipelines.publish(ctx, boxed(members)); err != nil {
		return nil, err
	}
	setChange, plainChange := newChange(c), newChange(c)
	peers := s.startPeers(ctx, plainName)
	defer peers.close(ctx)
	writers := []writer{setChange.writer(ours, setName, members, func(ctx context.Context, add, remove []string) error {
		return set.Apply(ctx, replset.Delta{Add: add, Remove: remove})
	})}
	for _, way := range []struct {
		name string
		classic
	}{{byHand, pipelines}, {byRoute, routed}} {
		writers = append(writers, plainChange.writer(way.name, plainName, members, func(ctx context.Context, add, remove []string) error {
			return way.apply(ctx, boxed(add), boxed(remove))
		}))
	}
	sets, of, err := s.others(setName)
	if err != nil {
		return nil, err
	}
	for i, set := range sets { // the same set, and so the same change
		writers = append(writers, setChange.writer(of[i].of(ours), setName, members, func(ctx context.Context, add, remove []string) error {
			return set.Apply(ctx, replset.Delta{Add: add, Remove: remove})
		}))
	}
	for _, p := range peers.running {
		writers = append(writers, p.applier(plainName, plainChange, members))
	}
	res, err = s.write(ctx, bench.Options{Load: s.opts.load(5*time.Second, 30*time.Second)}, writers)
	peers.mark(res)
	return res, err
}
