package memory

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// scripts are those of the cache, each by its hash. They follow the Lua text
// line by line; the comments are there.
var scripts = map[string]known{}

type known struct {
	source string
	run    func(c *call) any
}

func init() {
	for _, k := range []struct {
		script script.Script
		run    func(c *call) any
	}{
		{script.Hello, (*call).hello},
		{script.Write, (*call).write},
		{script.Lease, (*call).lease},
		{script.Fill, (*call).fill},
		{script.Promote, (*call).promote},
		{script.Copy, (*call).copies},
		{script.List, (*call).listed},
		{script.Raise, (*call).raise},
		{script.ReadNotes, (*call).readNotes},
		{script.Forget, (*call).forget},
		{script.TaggedWrite, (*call).taggedWrite},
		{script.TaggedLease, (*call).taggedLease},
		{script.TaggedFill, (*call).taggedFill},
	} {
		scripts[k.script.SHA] = known{k.script.Source, k.run}
		if stand := k.script.Stand; stand != nil {
			scripts[stand.SHA] = known{stand.Source, func(c *call) any {
				if !c.stand() {
					return []any{int64(0), int64(1), c.now}
				}
				return k.run(c)
			}}
		}
	}
}

func eval(s *Shard, cmd []string) any {
	for sha, known := range scripts {
		if known.source == cmd[1] {
			s.scripts[sha] = true
			return s.script(sha, cmd)
		}
	}
	return errNoLua
}

func evalsha(s *Shard, cmd []string) any {
	sha := strings.ToLower(cmd[1])
	if !s.scripts[sha] {
		return errNoScript
	}
	return s.script(sha, cmd)
}

func scripting(s *Shard, cmd []string) any {
	switch strings.ToUpper(cmd[1]) {
	case "LOAD":
		if len(cmd) != 3 {
			return errSubscript
		}
		for sha, known := range scripts {
			if known.source == cmd[2] {
				s.scripts[sha] = true
				return sha
			}
		}
		return errNoLua
	case "FLUSH":
		clear(s.scripts)
		return "OK"
	}
	return errSubscript
}

func (s *Shard) script(sha string, cmd []string) any {
	n, err := strconv.Atoi(cmd[2])
	if err != nil || n < 0 || n > len(cmd)-3 {
		return serverError("ERR Number of keys can't be greater than number of args")
	}
	c := &call{Shard: s, keys: cmd[3 : 3+n], args: cmd[3+n:], now: s.now().UnixMicro()}
	if len(c.keys) == 0 || len(c.args) < 2 {
		return serverError("ERR the script wants a key and two arguments")
	}
	theirs := c.number(len(c.args) - 1)
	c.args = c.args[:len(c.args)-1]
	c.open()
	if theirs < c.list {
		if c.changed {
			c.save()
		}
		return []any{int64(0), int64(3), c.now}
	}
	reply := scripts[sha].run(c)
	if c.err != nil {
		return serverError("ERR " + c.err.Error())
	}
	return reply
}

// call is one run of a script, with the state of the shard that state.lua opens.
type call struct {
	*Shard
	keys, args []string
	now        int64 // us

	state
	changed bool
	err     error // an argument is not what it must be

	// At a shard that stands in for others.
	outage int64
	lists  []string
}

func (c *call) arg(i int) string {
	if i < 0 || i >= len(c.args) {
		c.err = fmt.Errorf("the script has no argument %d", i+1)
		return ""
	}
	return c.args[i]
}

func (c *call) number(i int) int64 {
	n, err := strconv.ParseInt(c.arg(i), 10, 64)
	if err != nil {
		c.err = fmt.Errorf("argument %d of the script is not a number: %q", i+1, c.arg(i))
	}
	return n
}

func (c *call) open() {
	held, _ := c.get(c.keys[0])
	if !c.parse(held.text) {
		c.state = state{}
	}
	if c.epoch != 0 && c.now-c.verified < c.number(0) && c.verified <= c.now || c.server == c.runID {
		return
	}
	c.epoch = max(c.now, c.epoch+1)
	c.sequence, c.hot = max(c.epoch, c.sequence), noneHot
	c.verified, c.noted, c.since, c.server, c.changed = c.now, 0, c.now, c.runID, true
}

func (c *call) save() {
	c.Shard.keys[c.keys[0]] = value{text: "tcs\x02" + integers(c.epoch, c.sequence, c.verified) + c.hot + integers(c.list, c.noted, c.since) + c.server}
}

type state struct {
	epoch, sequence, verified int64
	hot                       string
	list                      int64
	noted, since              int64
	server                    string // its run id
}

func (s *state) parse(text string) bool {
	if len(text) <= 68 || text[:4] != "tcs\x02" {
		return false
	}
	for i, n := range []*int64{&s.epoch, &s.sequence, &s.verified} {
		*n = integer(text[4+8*i:])
	}
	s.hot, s.list, s.noted, s.since, s.server = text[28:44], integer(text[44:]), integer(text[52:]), integer(text[60:]), text[68:]
	return uint64(s.epoch) < 1<<53 && uint64(s.sequence) < 1<<53
}

// integers are 8 bytes each, big-endian.
func integers(ns ...int64) string {
	var b []byte
	for _, n := range ns {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return string(b)
}

const (
	headSize = 35
	marker   = 2 // a flag
	tagged   = 4 // another
)

func (c *call) head(expiry int64) string {
	return "tc\x01" + integers(c.epoch, c.sequence, expiry, c.outage)
}

// marks reports whether the value is of this epoch and outage, and whether it is a marker.
func (c *call) marks(text string) (current, isMarker bool) {
	if len(text) < headSize+2 || text[:3] != "tc\x01" || binary.BigEndian.Uint64([]byte(text[3:11])) != uint64(c.epoch) ||
		binary.BigEndian.Uint64([]byte(text[27:35])) != uint64(c.outage) {
		return false, false
	}
	return true, text[headSize]&marker != 0
}

// put stores a value with its life in ms, or deletes it if that is 0.
func (c *call) put(key string, life int64, body string) {
	if life <= 0 {
		delete(c.Shard.keys, key)
		c.Shard.changed(key)
		return
	}
	expiry := c.now/1000 + life
	c.Shard.keys[key] = value{text: c.head(expiry) + body, expires: time.UnixMilli(expiry)}
	c.Shard.changed(key)
}

func (c *call) write() any {
	if c.now > c.number(1) {
		return []any{int64(0), int64(0), c.now}
	}
	c.sequence++
	notice, reply := []byte(integers(c.epoch, c.sequence)), []any{c.epoch, c.sequence, c.now}
	for i, key := range c.keys[1:] {
		c.put(key, c.number(3+2*i), c.arg(4+2*i))
		c.leave(key)
		notice = fmt.Appendf(notice, "%d:%s", len(key), key)
		if ends := c.marked(key); ends > 0 {
			reply = append(reply, int64(i), ends)
		}
	}
	c.save()
	c.publish(c.arg(2), string(notice))
	return reply
}

func (c *call) unwatched() bool {
	is := c.verified > c.now || c.now-c.verified >= c.number(0)
	if is && c.changed {
		c.save()
	}
	return is
}

func (c *call) lease() any {
	if c.unwatched() {
		return []any{int64(0), int64(2), c.now}
	}
	reply := []any{c.epoch, c.sequence, c.now}
	expiry := c.now/1000 + c.number(1)
	for i, key := range c.keys[1:] {
		held, _ := c.get(key)
		current, isMarker := c.marks(held.text)
		over := c.arg(3 + i)
		switch {
		case !current || over != "" && held.text[:headSize] == over:
			c.put(key, c.number(1), string([]byte{marker, 0})+c.arg(2))
			held = c.Shard.keys[key]
		case isMarker && time.UnixMilli(expiry).After(held.expires):
			c.Shard.keys[key] = value{text: held.text, expires: time.UnixMilli(expiry)}
		}
		reply = append(reply, held.text)
	}
	if c.changed {
		c.save()
	}
	return reply
}

func (c *call) fill() any {
	reply := []any{c.epoch, c.sequence, c.now}
	for i, key := range c.keys[1:] {
		token, life, body := c.arg(1+3*i), c.number(2+3*i), c.arg(3+3*i)
		held, _ := c.get(key)
		stored := int64(0)
		current, isMarker := c.marks(held.text)
		if isMarker && held.text[headSize+2:] == token || current && held.text[:headSize] == token {
			c.put(key, life, body)
			stored = 1
		}
		reply = append(reply, stored)
	}
	if c.changed {
		c.save()
	}
	return reply
}
