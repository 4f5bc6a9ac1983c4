package replsettest

import (
	"context"
	"fmt"

	"github.com/shardkit/shardkit/slotmap"
)

var routingRules = []Rule{
	{
		"RS-011", "cluster-slots",
		"CLUSTER SLOTS is answered as a list of {first slot, last slot, {host, port, id, ...} of the master, ...}, numbers as int64, and on a healthy cluster covers each slot once",
		eachWay(func(p *probe, w way) error {
			_, err := p.owners(w)
			return err
		}),
	},
	{
		"RS-012", "routing-key-decides",
		"a command goes to the master that owns the routing key's slot, whether or not the command names that key, and for the empty key too",
		eachWay(func(p *probe, w way) error {
			owner, err := p.owners(ways[0])
			if err != nil {
				return err
			}
			keys := []string{"", "{}", "}", "a{b}c"}
			for slot := 0; slot < slotmap.Slots; slot += 257 {
				keys = append(keys, slotmap.KeyForSlot("replsettest", uint16(slot)))
			}
			for _, key := range keys {
				id, err := w.run(context.Background(), p.Backend, key, "CLUSTER", "MYID")
				if err != nil {
					return fmt.Errorf("CLUSTER MYID routed by %q: %w", key, err)
				}
				if slot := slotmap.Slot(key); id != owner[slot] {
					return fmt.Errorf("CLUSTER MYID routed by %q, slot %d, was answered by node %v; the slot's master is %v", key, slot, id, owner[slot])
				}
			}
			return nil
		}),
	},
	{
		"RS-013", "keyless-script",
		"an EVAL without KEYS runs on the master that owns the routing key's slot",
		eachWay(func(p *probe, w way) error {
			for i := range 24 {
				key := p.key(fmt.Sprint("script", w.name, i))
				if err := p.scripts(key); err != nil {
					return err
				}
				if err := p.known("SET", key, key); err != nil {
					return err
				}
				got, err := w.run(context.Background(), p.Backend, key, "EVAL", keylessScript, "0", key)
				if err != nil {
					return fmt.Errorf("EVAL routed by %q: %w", key, err)
				}
				if err := same(got, key); err != nil {
					return err
				}
			}
			return nil
		}),
	},
	{
		"RS-014", "every-slot-served",
		"keys of all slots are written and read back by any method",
		func(p *probe) error {
			for i := range 96 {
				key := p.key(fmt.Sprint("spread", i))
				if err := p.steps(ways[i%3], step{[]string{"SET", key, key}, "OK"}); err != nil {
					return err
				}
				if err := p.steps(ways[i/3%3], step{[]string{"GET", key}, key}); err != nil {
					return err
				}
			}
			return nil
		},
	},
}

const keylessScript = "return redis.call('GET', ARGV[1])"

// owners reads CLUSTER SLOTS as a table of node ids, and checks its shape.
func (p *probe) owners(w way) (*[slotmap.Slots]string, error) {
	v, err := w.run(context.Background(), p.Backend, p.key("slots"), "CLUSTER", "SLOTS")
	if err != nil {
		return nil, fmt.Errorf("CLUSTER SLOTS: %w", err)
	}
	ranges, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("CLUSTER SLOTS: got %s, want a list", show(v))
	}
	var owner [slotmap.Slots]string
	for _, r := range ranges {
		list, _ := r.([]any)
		if len(list) < 3 {
			return nil, fmt.Errorf("CLUSTER SLOTS: an element is %s, want {first, last, master, ...}", show(r))
		}
		first, ok1 := list[0].(int64)
		last, ok2 := list[1].(int64)
		master, ok3 := list[2].([]any)
		if !ok1 || !ok2 || !ok3 || len(master) < 3 || first < 0 || last >= slotmap.Slots {
			return nil, fmt.Errorf("CLUSTER SLOTS: an element is %s, want {int64, int64, {string, int64, string, ...}, ...}", show(r))
		}
		_, okHost := master[0].(string)
		_, okPort := master[1].(int64)
		id, okID := master[2].(string)
		if !okHost || !okPort || !okID {
			return nil, fmt.Errorf("CLUSTER SLOTS: a master is %s, want {string, int64, string, ...}", show(list[2]))
		}
		for slot := first; slot <= last; slot++ {
			if owner[slot] != "" {
				return nil, fmt.Errorf("CLUSTER SLOTS: slot %d is listed twice", slot)
			}
			owner[slot] = id
		}
	}
	for slot, id := range owner {
		if id == "" {
			return nil, fmt.Errorf("CLUSTER SLOTS: slot %d is not listed: is this cluster well?", slot)
		}
	}
	return &owner, nil
}

// apart returns two keys in different slots, others for each n.
func (p *probe) apart(n int) (a, b string) {
	a, b = p.key(fmt.Sprint("apart-a", n)), p.key(fmt.Sprint("apart-b", n))
	if slotmap.SameSlot(a, b) { // once in 16384 times
		b = p.key(fmt.Sprint("apart-c", n))
	}
	return a, b
}
