package memory

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// command is one of the server's: the fewest words it takes, and what it does.
type command struct {
	least int
	run   func(s *Shard, cmd []string) any
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"DBSIZE":    {1, dbsize},
		"DEL":       {2, del},
		"EVAL":      {3, eval},
		"EVALSHA":   {3, evalsha},
		"EXISTS":    {2, exists},
		"FLUSHALL":  {1, flushall},
		"GET":       {2, get},
		"INCR":      {2, incr},
		"INFO":      {1, info},
		"KEYS":      {2, keys},
		"MGET":      {2, mget},
		"PEXPIRE":   {3, pexpire},
		"PEXPIREAT": {3, pexpireat},
		"PING":      {1, ping},
		"PTTL":      {2, pttl},
		"PUBLISH":   {3, publish},
		"ROLE":      {1, role},
		"SCAN":      {2, scan},
		"SCRIPT":    {2, scripting},
		"SET":       {3, set},
		"TIME":      {1, clock},
	}
}

func get(s *Shard, cmd []string) any {
	if v, ok := s.get(cmd[1]); ok {
		return v.text
	}
	return nil
}

func mget(s *Shard, cmd []string) any {
	values := make([]any, len(cmd)-1)
	for i, key := range cmd[1:] {
		if v, ok := s.get(key); ok {
			values[i] = v.text
		}
	}
	return values
}

func set(s *Shard, cmd []string) any {
	v := value{text: cmd[2]}
	old, held := s.get(cmd[1])
	for i := 3; i < len(cmd); i++ {
		switch option := strings.ToUpper(cmd[i]); option {
		case "NX", "XX":
			if held == (option == "NX") {
				return nil
			}
		case "KEEPTTL":
			v.expires = old.expires
		case "EX", "PX", "EXAT", "PXAT":
			if i++; i == len(cmd) {
				return errSyntax
			}
			n, err := strconv.ParseInt(cmd[i], 10, 64)
			switch {
			case err != nil:
				return errNotInt
			case n <= 0:
				return errLife
			}
			v.expires = s.moment(option, n)
		default:
			return errSyntax
		}
	}
	s.keys[cmd[1]] = v
	s.changed(cmd[1])
	return "OK"
}

// moment is when a life ends that is given with one of SET's options.
func (s *Shard) moment(option string, n int64) time.Time {
	switch option {
	case "EX":
		return s.now().Add(time.Duration(n) * time.Second)
	case "PX":
		return s.now().Add(time.Duration(n) * time.Millisecond)
	case "EXAT":
		return time.Unix(n, 0)
	}
	return time.UnixMilli(n)
}

func incr(s *Shard, cmd []string) any {
	v, held := s.get(cmd[1])
	if !held {
		v.text = "0"
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	if err != nil {
		return errNotInt
	}
	v.text = strconv.FormatInt(n+1, 10)
	s.keys[cmd[1]] = v
	s.changed(cmd[1])
	return n + 1
}

func del(s *Shard, cmd []string) any {
	var n int64
	for _, key := range cmd[1:] {
		if _, ok := s.get(key); ok {
			delete(s.keys, key)
			s.changed(key)
			n++
		}
	}
	return n
}

func exists(s *Shard, cmd []string) any {
	var n int64
	for _, key := range cmd[1:] {
		if _, ok := s.get(key); ok {
			n++
		}
	}
	return n
}

func pexpire(s *Shard, cmd []string) any {
	n, err := strconv.ParseInt(cmd[2], 10, 64)
	if err != nil {
		return errNotInt
	}
	return s.expire(cmd, s.now().Add(time.Duration(n)*time.Millisecond))
}

func pexpireat(s *Shard, cmd []string) any {
	n, err := strconv.ParseInt(cmd[2], 10, 64)
	if err != nil {
		return errNotInt
	}
	return s.expire(cmd, time.UnixMilli(n))
}

func (s *Shard) expire(cmd []string, at time.Time) any {
	v, held := s.get(cmd[1])
	if !held {
		return int64(0)
	}
	for _, option := range cmd[3:] {
		if !strings.EqualFold(option, "GT") {
			return errSyntax
		}
		if v.expires.IsZero() || !at.After(v.expires) {
			return int64(0)
		}
	}
	v.expires = at
	s.keys[cmd[1]] = v
	s.changed(cmd[1])
	s.get(cmd[1]) // deletes it if it is over
	return int64(1)
}

func pttl(s *Shard, cmd []string) any {
	v, held := s.get(cmd[1])
	switch {
	case !held:
		return int64(-2)
	case v.expires.IsZero():
		return int64(-1)
	}
	return v.expires.Sub(s.now()).Milliseconds()
}

func flushall(s *Shard, _ []string) any {
	clear(s.keys)
	s.changedAll()
	return "OK"
}

func dbsize(s *Shard, _ []string) any { return int64(len(s.live())) }

// keys takes no pattern but "*" and a prefix with one at its end.
func keys(s *Shard, cmd []string) any {
	prefix, ok := strings.CutSuffix(cmd[1], "*")
	if !ok || strings.ContainsAny(prefix, `*?[\`) {
		return serverError("ERR package memory knows KEYS prefix* alone")
	}
	list := []any{}
	for _, key := range s.live() {
		if strings.HasPrefix(key, prefix) {
			list = append(list, key)
		}
	}
	return list
}

// scan returns all keys at once, and knows one pattern: a prefix, its special
// characters escaped, with * at its end.
func scan(s *Shard, cmd []string) any {
	prefix := ""
	for i := 2; i+1 < len(cmd); i += 2 {
		if strings.EqualFold(cmd[i], "MATCH") {
			prefix = unescaper.Replace(strings.TrimSuffix(cmd[i+1], "*"))
		}
	}
	list := []any{}
	for _, key := range s.live() {
		if strings.HasPrefix(key, prefix) {
			list = append(list, key)
		}
	}
	return []any{"0", list}
}

var unescaper = strings.NewReplacer(`\\`, `\`, `\*`, `*`, `\?`, `?`, `\[`, `[`, `\]`, `]`)

// live returns the keys that are there, sorted.
func (s *Shard) live() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.keys)), func(key string) bool {
		_, ok := s.get(key)
		return !ok
	})
}

func clock(s *Shard, _ []string) any {
	now := s.now()
	return []any{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)}
}

func info(s *Shard, _ []string) any {
	return fmt.Sprintf("# Server\r\nrun_id:%s\r\n", s.runID)
}

func role(*Shard, []string) any { return []any{"master", int64(0), []any{}} }

func ping(_ *Shard, cmd []string) any {
	if len(cmd) > 1 {
		return cmd[1]
	}
	return "PONG"
}
