package memory

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// list is what a shard keeps of the list of shards: a hash.
type list struct {
	number, since int64
	text          string
}

func (c *call) listed() any {
	held, _ := c.get(c.keys[1])
	l := held.list
	if number := c.number(1); number > l.number && l.number <= c.number(5) {
		var fresh struct{ Fresh int64 }
		json.Unmarshal([]byte(c.arg(2)), &fresh)
		if fresh.Fresh > l.number {
			c.begin(c.arg(6))
		}
		l = list{number, c.now, c.arg(2)}
		c.Shard.keys[c.keys[1]] = value{list: l}
	}
	c.list = l.number
	c.save()
	window := c.number(4)
	views, _ := c.get(c.keys[2])
	scores := maps.Clone(views.scores)
	if scores == nil {
		scores = map[string]int64{}
	}
	scores[c.arg(3)] = c.now
	maps.DeleteFunc(scores, func(_ string, at int64) bool { return at <= c.now-window })
	expires := c.Shard.now().Add(time.Duration((window+999)/1000) * time.Millisecond)
	c.Shard.keys[c.keys[2]] = value{scores: scores, expires: expires}
	reply := []any{c.epoch, c.sequence, c.now, l.number, max(c.now-l.since, 0), l.text}
	for _, print := range slices.SortedFunc(maps.Keys(scores), func(a, b string) int {
		return cmp.Or(cmp.Compare(scores[a], scores[b]), cmp.Compare(a, b))
	}) {
		reply = append(reply, print)
	}
	return reply
}
