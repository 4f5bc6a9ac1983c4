package memory

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// outage is what a shard keeps about another one that is out: a field of a hash.
type outage struct{ number, until, claim int64 }

func (c *call) setOutage(key, name string, o outage) {
	held, _ := c.get(key)
	held.outages = maps.Clone(held.outages)
	if held.outages == nil {
		held.outages = map[string]outage{}
	}
	held.outages[name] = o
	c.Shard.keys[key] = held
}

// take removes the i-th of list.
func take(list *[]string, i int) string {
	if i >= len(*list) {
		return ""
	}
	s := (*list)[i]
	*list = slices.Delete(slices.Clone(*list), i, i+1)
	return s
}

// stand is what the script does first at a shard that stands in for others. It
// reports whether their outages are open.
func (c *call) stand() bool {
	n := c.number(1)
	take(&c.args, 1)
	outages := take(&c.keys, 1)
	for range n {
		c.lists = append(c.lists, take(&c.keys, 1))
		name := take(&c.args, 1)
		number := c.number(1)
		take(&c.args, 1)
		held, _ := c.get(outages)
		open, there := held.outages[name]
		if number == 0 {
			if !there {
				c.setOutage(outages, name, outage{})
			}
		} else if open.number != number || open.until <= c.now {
			return false
		}
		c.outage = max(c.outage, number)
	}
	return true
}

func (c *call) leave(key string) {
	for _, list := range c.lists {
		held, _ := c.get(list)
		note := key
		if _, there := held.scores[key]; len(held.scores) >= script.MostNotes && !there {
			note = script.AllNotes
		}
		held.scores = maps.Clone(held.scores)
		if held.scores == nil {
			held.scores = map[string]int64{}
		}
		before := len(held.scores)
		held.scores[note] = c.sequence
		c.noted += int64(len(held.scores) - before)
		c.Shard.keys[list] = held
	}
}

func (c *call) hello() any {
	if len(c.keys) < 2 {
		return serverError("ERR the script wants two keys")
	}
	found := c.verified
	watched := c.verified <= c.now && c.now-c.verified < c.number(1)
	if watched && c.arg(2) == "1" || c.verified == c.number(3) {
		c.verified, watched = c.now, true
	}
	key := c.keys[1]
	for i := 5; i < len(c.args); i += 2 {
		held, _ := c.get(key)
		o := held.outages[c.args[i]]
		if o.until <= c.now || o.number <= c.now-c.number(i+1) {
			o.number = c.now
		}
		o.until = c.now + c.number(4)
		c.setOutage(key, c.args[i], o)
	}
	held, _ := c.get(key)
	left := maps.Clone(held.outages)
	var told []any
	var count int64
	prefix := strings.TrimSuffix(c.keys[0], "state") + "notes:"
	for _, name := range slices.Sorted(maps.Keys(left)) {
		list, _ := c.get(prefix + name)
		n := int64(len(list.scores))
		count += n
		o := left[name]
		if o.until <= c.now && n == 0 {
			delete(left, name)
		} else {
			told = append(told, name, o.number, max(o.until-c.now, 0), n)
		}
	}
	if len(left) == 0 {
		delete(c.Shard.keys, key)
	} else {
		c.Shard.keys[key] = value{outages: left}
	}
	if count != c.noted {
		c.since, c.noted = c.now, count
	}
	c.save()
	reply := []any{c.epoch, c.sequence, c.now, found, int64(0), c.since}
	if watched {
		reply[4] = int64(1)
	}
	return append(reply, told...)
}

func (c *call) raise() any {
	if c.epoch == c.number(1) {
		c.begin(c.arg(2))
		c.verified, c.changed = c.now, true
	}
	if c.changed {
		c.save()
	}
	return []any{c.epoch, c.sequence, c.now}
}

// begin begins a new epoch.
func (c *call) begin(channel string) {
	c.epoch = max(c.now, c.epoch+1)
	c.sequence = max(c.epoch, c.sequence) + 1
	c.publish(channel, integers(c.epoch, c.sequence))
}

func (c *call) readNotes() any {
	if len(c.keys) < 3 {
		return serverError("ERR the script wants three keys")
	}
	held, _ := c.get(c.keys[1])
	o := held.outages[c.arg(1)]
	if o.claim > c.now && o.claim != c.number(2) {
		return []any{c.epoch, c.sequence, c.now, int64(0)}
	}
	o.claim = c.now + c.number(3)
	c.setOutage(c.keys[1], c.arg(1), o)
	if c.changed {
		c.save()
	}
	reply := []any{c.epoch, c.sequence, c.now, o.claim}
	list, _ := c.get(c.keys[2])
	notes := slices.SortedFunc(maps.Keys(list.scores), func(a, b string) int {
		return cmp.Or(cmp.Compare(list.scores[a], list.scores[b]), cmp.Compare(a, b))
	})
	for _, note := range notes[:min(int64(len(notes)), c.number(4))] {
		reply = append(reply, note, strconv.FormatInt(list.scores[note], 10))
	}
	return reply
}

func (c *call) forget() any {
	if len(c.keys) < 3 {
		return serverError("ERR the script wants three keys")
	}
	list, _ := c.get(c.keys[2])
	notes := maps.Clone(list.scores)
	for i := 3; i < len(c.args); i += 2 {
		if score, there := notes[c.args[i]]; there && score == c.number(i+1) {
			delete(notes, c.args[i])
		}
	}
	c.noted = max(c.noted-int64(len(list.scores)-len(notes)), 0)
	if delete(c.Shard.keys, c.keys[2]); len(notes) > 0 {
		c.Shard.keys[c.keys[2]] = value{scores: notes}
	}
	held, _ := c.get(c.keys[1])
	if o, there := held.outages[c.arg(1)]; there && c.arg(2) == "1" {
		o.claim = 0
		c.setOutage(c.keys[1], c.arg(1), o)
	}
	c.save()
	return []any{c.epoch, c.sequence, c.now}
}
