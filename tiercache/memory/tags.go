package memory

import (
	"math"
	"time"
)

// takeTags cuts the keys of tags off, as lua/tags.lua does.
func (c *call) takeTags() (tags []string, life int64) {
	n := int(c.number(len(c.args) - 1))
	life = c.number(len(c.args) - 2)
	if c.err != nil || n < 0 || n >= len(c.keys) {
		return nil, 0
	}
	c.args = c.args[: len(c.args)-2 : len(c.args)-2]
	tags = c.keys[len(c.keys)-n:]
	c.keys = c.keys[:len(c.keys)-n]
	return tags, life
}

func (c *call) keepTags(tags []string, life, at int64) {
	expires := time.UnixMilli(c.now/1000 + life)
	for _, tag := range tags {
		held, found := c.get(tag)
		switch {
		case !found:
			c.Shard.keys[tag] = value{text: integers(at), expires: expires}
		case expires.After(held.expires):
			held.expires = expires
			c.Shard.keys[tag] = held
		}
	}
}

func (c *call) taggedWrite() any {
	tags, life := c.takeTags()
	if c.now <= c.number(1) {
		c.keepTags(tags, life, c.sequence+1)
	}
	return c.write()
}

func (c *call) taggedLease() any {
	tags, life := c.takeTags()
	c.keepTags(tags, life, c.sequence)
	return c.lease()
}

func (c *call) taggedFill() any {
	tags, life := c.takeTags()
	heard, made := c.number(len(c.args)-1), int64(0)
	if c.err != nil {
		return nil
	}
	c.args = c.args[:len(c.args)-1]
	for _, tag := range tags {
		if held, _ := c.get(tag); len(held.text) == 8 {
			made = max(made, integer(held.text))
		} else {
			made = math.MaxInt64
		}
	}
	args := append([]string(nil), c.args...)
	for i, key := range c.keys[1:] {
		held, _ := c.get(key)
		if current, isMarker := c.marks(held.text); current && max(integer(held.text[11:]), heard) < made {
			if heard >= 0 && isMarker && held.text[headSize+2:] == c.arg(1+3*i) {
				delete(c.Shard.keys, key)
				c.Shard.changed(key)
			}
			args[1+3*i] = ""
		}
	}
	c.args = args
	c.keepTags(tags, life, c.sequence)
	return c.fill()
}
