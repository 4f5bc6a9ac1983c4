package msgpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// The library makes room for as many elements as a header claims: five bytes are
// enough to ask for 4 billion. It also calls itself for each level. So data is
// scanned first, and decoded only if it holds what it claims.

// maxDepth is that of encoding/json.
const maxDepth = 10000

var (
	errShort = errors.New("the data ends early")
	errRest  = errors.New("data after the value")
	errDepth = fmt.Errorf("nested deeper than %d", maxDepth)
)

// scan checks that data is one whole value, and returns where the bodies of its
// times begin.
func scan(data []byte) (times []int, err error) {
	var open []int // how many values each array or map that is open still lacks
	at := 0
	for {
		if at == len(data) {
			return nil, errShort
		}
		h := headOf(data[at:])
		switch {
		case h.size == 0:
			return nil, fmt.Errorf("code %#x at byte %d is none", data[at], at)
		case len(data)-at < h.size || uint64(len(data)-at-h.size) < h.bytes:
			return nil, errShort
		case uint64(len(data)-at-h.size) < h.values:
			return nil, errShort
		}
		if h.ext {
			if id := int8(data[at+h.size-1]); id != -1 {
				return nil, fmt.Errorf("an extension of type %d: only times are taken", id)
			}
			times = append(times, at+h.size)
		}
		at += h.size + int(h.bytes)
		if h.values > 0 {
			if len(open) == maxDepth {
				return nil, errDepth
			}
			open = append(open, int(h.values))
			continue
		}
		for len(open) > 0 {
			last := len(open) - 1
			open[last]--
			if open[last] > 0 {
				break
			}
			open = open[:last]
		}
		if len(open) == 0 {
			break
		}
	}
	if at < len(data) {
		return nil, errRest
	}
	return times, nil
}

// A head is how a value begins.
type head struct {
	size   int    // in bytes; 0 if there is no such value
	bytes  uint64 // that follow
	values uint64 // that follow
	ext    bool
}

// headOf reads the beginning of b, which is not empty.
// See github.com/msgpack/msgpack/blob/master/spec.md.
func headOf(b []byte) head {
	// number is the big-endian one of n bytes after the code; 0 if b is too short, which
	// the size will tell.
	number := func(n int) uint64 {
		if len(b) < 1+n {
			return 0
		}
		var whole [8]byte
		copy(whole[8-n:], b[1:])
		return binary.BigEndian.Uint64(whole[:])
	}
	switch c := b[0]; {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3: // small integers, nil, booleans
		return head{size: 1}
	case c <= 0x8f: // map
		return head{size: 1, values: 2 * uint64(c&0x0f)}
	case c <= 0x9f: // array
		return head{size: 1, values: uint64(c & 0x0f)}
	case c <= 0xbf: // string
		return head{size: 1, bytes: uint64(c & 0x1f)}
	case 0xc4 <= c && c <= 0xc6: // bytes
		n := 1 << (c - 0xc4)
		return head{size: 1 + n, bytes: number(n)}
	case 0xc7 <= c && c <= 0xc9: // extension
		n := 1 << (c - 0xc7)
		return head{size: 2 + n, bytes: number(n), ext: true}
	case c == 0xca || c == 0xcb: // float
		return head{size: 1, bytes: 4 << (c - 0xca)}
	case 0xcc <= c && c <= 0xcf: // unsigned integer
		return head{size: 1, bytes: 1 << (c - 0xcc)}
	case 0xd0 <= c && c <= 0xd3: // integer
		return head{size: 1, bytes: 1 << (c - 0xd0)}
	case 0xd4 <= c && c <= 0xd8: // extension of 1 to 16 bytes
		return head{size: 2, bytes: 1 << (c - 0xd4), ext: true}
	case 0xd9 <= c && c <= 0xdb: // string
		n := 1 << (c - 0xd9)
		return head{size: 1 + n, bytes: number(n)}
	case c == 0xdc || c == 0xdd: // array
		n := 2 << (c - 0xdc)
		return head{size: 1 + n, values: number(n)}
	case c == 0xde || c == 0xdf: // map
		n := 2 << (c - 0xde)
		return head{size: 1 + n, values: 2 * number(n)}
	}
	return head{}
}

// reader keeps the library from reading codes in the body of a time. Where it looks
// for a map it takes an extension's head for nothing, and would then read what was
// not scanned as that.
type reader struct {
	*bytes.Reader
	size   int
	bodies []int
}

var errBody = errors.New("a time in place of a map")

func (r *reader) ReadByte() (byte, error) {
	at := r.size - r.Len()
	for len(r.bodies) > 0 && r.bodies[0] < at {
		r.bodies = r.bodies[1:]
	}
	if len(r.bodies) > 0 && r.bodies[0] == at {
		return 0, errBody
	}
	return r.Reader.ReadByte()
}
