package replset

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// waitAtMost bounds how long a write waits for the server replicas of one master.
const waitAtMost = time.Second

// waitReplicas waits on each node until enough of its server replicas have
// acknowledged what it was sent so far, and fails the slots where they did not.
//
// WAIT counts from the last write of its own connection, so a write goes before
// it; the replication stream is one sequence, so that covers every earlier
// write to the node.
func (f *fanout) waitReplicas(ctx context.Context, slots []uint16) {
	s := f.set
	topo, err := s.topologyOf(ctx, slots)
	if err != nil {
		f.failAll(slots, fmt.Errorf("written, but who replicates it is unknown: %w", err))
		return
	}
	want := strconv.Itoa(s.opts.WaitReplicas)
	var wg sync.WaitGroup
	for _, slots := range topo.nodes {
		wg.Go(func() {
			replica := s.replicaKey(slots[0])
			replies := s.backend.Pipeline(ctx, []string{replica, replica}, [][]string{
				{"SET", replica + waitSuffix, "", "PX", "1"},
				{"WAIT", want, strconv.FormatInt(waitAtMost.Milliseconds(), 10)},
			})
			n, err := asInt(replies[1])
			if _, failed := replies[0].(error); failed && err == nil {
				err = replies[0].(error)
			}
			if err == nil && int(n) < s.opts.WaitReplicas {
				err = fmt.Errorf("%w: %d of %d", ErrUnderReplicated, n, s.opts.WaitReplicas)
			}
			if err != nil {
				f.failAll(slots, err)
			}
		})
	}
	wg.Wait()
}

// failAll fails those slots that were written.
func (f *fanout) failAll(slots []uint16, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, slot := range slots {
		if f.failed[slot] == nil {
			f.failed[slot] = err
		}
	}
}
