package memory

import (
	"encoding/binary"
	"maps"
	"strings"
	"time"
)

const noneHot = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func (c *call) copied() string { return strings.TrimSuffix(c.keys[0], "state") + "hot" }

// bit is the place of a key's bit among those of hot keys.
func bit(key string) (place int, value byte) {
	n := len(key)
	h := n + 7*int(key[n-2]) + 13*int(key[n-1]) + 29*int(key[n/2-1]) + 43*int(key[n/2])
	return h / 8 % 16, 1 << (h % 8)
}

// marked is until when there may be copies of a key, 0 if there are none.
func (c *call) marked(key string) int64 {
	if place, value := bit(key); c.hot[place]&value == 0 {
		return 0
	}
	held, _ := c.get(c.copied())
	if ends := held.scores[key]; ends > c.now {
		return ends
	}
	return 0
}

func (c *call) promote() any {
	if c.unwatched() {
		return []any{int64(0), int64(2), c.now}
	}
	key := c.keys[1]
	held, found := c.get(key)
	var reply any
	if found {
		reply = held.text
	}
	ends := int64(0)
	if current, isMarker := c.marks(held.text); current && !isMarker && held.text[headSize]&tagged == 0 {
		ends = c.mark(key, c.number(1), c.number(2))
	}
	if c.changed {
		c.save()
	}
	return []any{c.epoch, c.sequence, c.now, reply, ends}
}

func (c *call) mark(key string, life, left int64) int64 {
	held, _ := c.get(c.copied())
	if ends := held.scores[key]; ends-c.now > left {
		return -ends
	}
	ends := c.now + life
	scores := maps.Clone(held.scores)
	if scores == nil {
		scores = map[string]int64{}
	}
	maps.DeleteFunc(scores, func(_ string, ends int64) bool { return ends <= c.now })
	scores[key] = ends
	expires := c.Shard.now().Add(time.Duration((life+999)/1000) * time.Millisecond)
	c.Shard.keys[c.copied()] = value{scores: scores, expires: expires}
	bits := []byte(noneHot)
	for key := range scores {
		place, value := bit(key)
		bits[place] |= value
	}
	c.hot, c.changed = string(bits), true
	return ends
}

func (c *call) copies() any {
	reply := []any{c.epoch, c.sequence, c.now}
	for i, key := range c.keys[1:] {
		ends, asof, text := c.number(1+3*i), c.number(2+3*i), c.arg(3+3*i)
		held, _ := c.get(key)
		newer := len(held.text) >= headSize && held.text[:3] == "tc\x01" &&
			integer(held.text[3:]) == c.epoch && integer(held.text[11:]) > asof
		stored := int64(0)
		if !newer && c.now < ends*1000 {
			c.Shard.keys[key] = value{text: "tc\x01" + integers(c.epoch, asof, ends, 0) + text, expires: time.UnixMilli(ends)}
			stored = 1
		}
		reply = append(reply, stored)
	}
	if c.changed {
		c.save()
	}
	return reply
}

func integer(s string) int64 { return int64(binary.BigEndian.Uint64([]byte(s[:8]))) }
