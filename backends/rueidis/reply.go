package rueidisbackend

import (
	"context"
	"strings"

	"github.com/redis/rueidis"
)

// reply turns a node's result into a reply in RESP2's types, or into an error,
// and has the slot map read again after an error that an old one explains.
func (b *Backend) reply(ctx context.Context, addr string, r rueidis.RedisResult) any {
	if err := r.NonRedisError(); err != nil {
		b.reload()
		return failure(ctx, addr, err)
	}
	m, _ := r.ToMessage()
	v := plain(&m)
	if err, failed := v.(*serverError); failed && err.fromOldMap() {
		b.reload()
	}
	return v
}

// plain turns a message into int64, string, nil, error, or []any of these.
//
// A double stays the text that the server sent, which is what it sends as a
// string in RESP2: parsing and printing it again would lose digits that Redis
// 7.0 prints.
func plain(m *rueidis.RedisMessage) any {
	switch {
	case m.IsNil():
		return nil
	case m.IsInt64():
		n, _ := m.ToInt64()
		return n
	case m.IsBool():
		if yes, _ := m.ToBool(); yes {
			return int64(1)
		}
		return int64(0)
	case m.IsArray():
		elements, _ := m.ToArray()
		return list(elements)
	case m.IsMap():
		return flat(m)
	}
	text, err := m.ToString() // the text of every other type, with an error's code
	switch {
	case err != nil:
		return &serverError{text, err}
	case m.IsString(), m.IsFloat64():
		return text
	case len(text) > 3 && text[3] == ':': // a verbatim string, "txt:..."; a big number has no colon
		return text[4:]
	}
	return text
}

func list(elements []rueidis.RedisMessage) []any {
	out := make([]any, len(elements))
	for i := range elements {
		out[i] = plain(&elements[i])
	}
	return out
}

// flat returns a map's keys and values in turn, in the server's order. rueidis
// has them like this but hands out a Go map, which has another order and only
// string keys. Its cache format (seven bytes of life, then the type) is the way
// around that: read back under the type of an array, the same bytes are a list.
func flat(m *rueidis.RedisMessage) []any {
	const typeAt = 7
	if bytes := m.CacheMarshal(nil); len(bytes) > typeAt && bytes[typeAt] == '%' {
		bytes[typeAt] = '*'
		var array rueidis.RedisMessage
		if array.CacheUnmarshalView(bytes) == nil && array.IsArray() {
			elements, _ := array.ToArray()
			return list(elements)
		}
	}
	// A later rueidis has another cache format: do without the order.
	pairs, _ := m.ToMap()
	out := make([]any, 0, 2*len(pairs))
	for k, v := range pairs {
		out = append(out, k, plain(&v))
	}
	return out
}

// shape undoes what RESP3 changed in the structure of some commands' replies,
// beyond the types.
func shape(cmd []string, v any) any {
	elements, ok := v.([]any)
	if !ok || len(elements) == 0 {
		return v
	}
	switch strings.ToUpper(cmd[0]) {
	case "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZINTER", "ZUNION", "ZDIFF",
		"ZPOPMIN", "ZPOPMAX", "ZRANDMEMBER", "HRANDFIELD": // member and score in a list of their own
		if _, nested := elements[0].([]any); !nested {
			return v
		}
		out := make([]any, 0, 2*len(elements))
		for _, e := range elements {
			pair, _ := e.([]any)
			out = append(out, pair...)
		}
		return out
	case "XREAD", "XREADGROUP": // a map of the streams, not a list of {name, entries}
		if _, isName := elements[0].(string); !isName {
			return v
		}
		out := make([]any, 0, len(elements)/2)
		for i := 0; i+1 < len(elements); i += 2 {
			out = append(out, []any{elements[i], elements[i+1]})
		}
		return out
	}
	return v
}
