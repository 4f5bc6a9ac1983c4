package memory

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// command is one of the server's: the fewest words it takes, where its keys
// are, and what it does.
type command struct {
	least int
	keys  func(cmd []string) []string
	run   func(b *Backend, cmd []string) any
}

func noKey([]string) []string        { return nil }
func oneKey(cmd []string) []string   { return cmd[1:2] }
func twoKeys(cmd []string) []string  { return cmd[1:3] }
func restKeys(cmd []string) []string { return cmd[1:] }

// counted reads "COMMAND n key ... [LIMIT m]".
func counted(cmd []string) []string {
	n, err := strconv.Atoi(cmd[1])
	if err != nil || n < 1 || n > len(cmd)-2 {
		return nil
	}
	return cmd[2 : 2+n]
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"GET":         {2, oneKey, get},
		"SET":         {3, oneKey, set},
		"DEL":         {2, restKeys, del},
		"EXISTS":      {2, restKeys, exists},
		"PEXPIRE":     {3, oneKey, pexpire},
		"PERSIST":     {2, oneKey, persist},
		"RENAME":      {3, twoKeys, rename},
		"SADD":        {3, oneKey, sadd},
		"SREM":        {3, oneKey, srem},
		"SCARD":       {2, oneKey, scard},
		"SMEMBERS":    {2, oneKey, combine(union)},
		"SISMEMBER":   {3, oneKey, sismember},
		"SMISMEMBER":  {3, oneKey, smismember},
		"SINTER":      {2, restKeys, combine(inter)},
		"SDIFF":       {2, restKeys, combine(diff)},
		"SINTERCARD":  {3, counted, sintercard},
		"SINTERSTORE": {3, restKeys, sinterstore},
		"TIME":        {1, noKey, clock},
		"CLUSTER":     {2, noKey, nil}, // needs the routing key: see run
	}
}

func get(b *Backend, cmd []string) any {
	v := b.get(cmd[1])
	switch {
	case v == nil:
		return nil
	case v.members != nil:
		return errWrongType
	}
	return v.text
}

func set(b *Backend, cmd []string) any {
	v := &value{text: cmd[2]}
	for i := 3; i < len(cmd); i++ {
		switch strings.ToUpper(cmd[i]) {
		case "NX":
			if b.get(cmd[1]) != nil {
				return nil
			}
		case "PX":
			if i++; i == len(cmd) {
				return errSyntax
			}
			d, err := millis(cmd[i])
			if err != nil {
				return err
			}
			v.expires = b.now().Add(d)
		default:
			return errSyntax
		}
	}
	b.keys[cmd[1]] = v
	return "OK"
}

func exists(b *Backend, cmd []string) any {
	var n int64
	for _, key := range cmd[1:] {
		if b.get(key) != nil {
			n++
		}
	}
	return n
}

func del(b *Backend, cmd []string) any {
	var n int64
	for _, key := range cmd[1:] {
		if b.get(key) != nil {
			delete(b.keys, key)
			n++
		}
	}
	return n
}

func pexpire(b *Backend, cmd []string) any {
	n, err := strconv.ParseInt(cmd[2], 10, 64)
	if err != nil {
		return errNotInt
	}
	v := b.get(cmd[1])
	if v == nil {
		return int64(0)
	}
	v.expires = b.now().Add(time.Duration(n) * time.Millisecond)
	return int64(1)
}

func persist(b *Backend, cmd []string) any {
	v := b.get(cmd[1])
	if v == nil || v.expires.IsZero() {
		return int64(0)
	}
	v.expires = time.Time{}
	return int64(1)
}

func rename(b *Backend, cmd []string) any {
	v := b.get(cmd[1])
	if v == nil {
		return errNoKey
	}
	delete(b.keys, cmd[1])
	b.keys[cmd[2]] = v
	return "OK"
}

func sadd(b *Backend, cmd []string) any {
	members, ok := b.set(cmd[1])
	if !ok {
		return errWrongType
	}
	if members == nil {
		members = map[string]struct{}{}
		b.keys[cmd[1]] = &value{members: members}
	}
	before := len(members)
	for _, m := range cmd[2:] {
		members[m] = struct{}{}
	}
	return int64(len(members) - before)
}

func srem(b *Backend, cmd []string) any {
	members, ok := b.set(cmd[1])
	if !ok {
		return errWrongType
	}
	before := len(members)
	for _, m := range cmd[2:] {
		delete(members, m)
	}
	n := int64(before - len(members))
	if before > 0 && len(members) == 0 {
		delete(b.keys, cmd[1])
	}
	return n
}

func scard(b *Backend, cmd []string) any {
	members, ok := b.set(cmd[1])
	if !ok {
		return errWrongType
	}
	return int64(len(members))
}

func sismember(b *Backend, cmd []string) any {
	members, ok := b.set(cmd[1])
	if !ok {
		return errWrongType
	}
	return has(members, cmd[2])
}

func smismember(b *Backend, cmd []string) any {
	members, ok := b.set(cmd[1])
	if !ok {
		return errWrongType
	}
	list := make([]any, 0, len(cmd)-2)
	for _, m := range cmd[2:] {
		list = append(list, has(members, m))
	}
	return list
}

func has(members map[string]struct{}, m string) int64 {
	if _, in := members[m]; in {
		return 1
	}
	return 0
}

// An operation changes acc, the first set, by another.
type operation func(acc, other map[string]struct{})

func inter(acc, other map[string]struct{}) {
	maps.DeleteFunc(acc, func(m string, _ struct{}) bool { return has(other, m) == 0 })
}

func diff(acc, other map[string]struct{}) {
	maps.DeleteFunc(acc, func(m string, _ struct{}) bool { return has(other, m) == 1 })
}

func union(acc, other map[string]struct{}) { maps.Copy(acc, other) }

// reduce applies the operation over the sets at keys; nil for a wrong type.
func (b *Backend) reduce(keys []string, op operation) map[string]struct{} {
	var acc map[string]struct{}
	for i, key := range keys {
		members, ok := b.set(key)
		switch {
		case !ok:
			return nil
		case i == 0:
			acc = maps.Clone(members)
			if acc == nil {
				acc = map[string]struct{}{}
			}
		default:
			op(acc, members)
		}
	}
	return acc
}

// combine is a command that answers with the members of a combination.
func combine(op operation) func(*Backend, []string) any {
	return func(b *Backend, cmd []string) any {
		acc := b.reduce(cmd[1:], op)
		if acc == nil {
			return errWrongType
		}
		list := make([]any, 0, len(acc))
		for _, m := range slices.Sorted(maps.Keys(acc)) {
			list = append(list, m)
		}
		return list
	}
}

func sintercard(b *Backend, cmd []string) any {
	keys := counted(cmd)
	if keys == nil {
		return errSyntax
	}
	acc := b.reduce(keys, inter)
	if acc == nil {
		return errWrongType
	}
	n := len(acc)
	if rest := cmd[2+len(keys):]; len(rest) == 2 && strings.EqualFold(rest[0], "LIMIT") {
		limit, err := strconv.Atoi(rest[1])
		if err != nil || limit < 0 {
			return errNotInt
		}
		if limit > 0 {
			n = min(n, limit)
		}
	} else if len(rest) != 0 {
		return errSyntax
	}
	return int64(n)
}

func sinterstore(b *Backend, cmd []string) any {
	acc := b.reduce(cmd[2:], inter)
	if acc == nil {
		return errWrongType
	}
	b.put(cmd[1], acc)
	return int64(len(acc))
}

func clock(b *Backend, _ []string) any {
	us := b.now().UnixMicro()
	return []any{strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10)}
}
