package tiercache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// Codec turns values into bytes and back. Its methods are called concurrently.
type Codec interface {
	// ID is kept with each value. 0 to 15 are this package's (ENVELOPE.md).
	ID() byte
	// Marshal returns v's bytes, which the caller may keep.
	Marshal(v any) ([]byte, error)
	// Unmarshal decodes data into v, which is a pointer. It does not change data,
	// nor keep it.
	Unmarshal(data []byte, v any) error
}

// Sizer is for a Codec whose bytes are much shorter than the values: it says what a
// value will take in L1, where that holds it decoded.
type Sizer interface {
	// Size is the number of bytes of data's value, about. It is asked of data that
	// decoded.
	Size(data []byte) int
}

var (
	// Raw stores strings and byte slices as they are.
	Raw Codec = rawCodec{}
	// JSON is encoding/json.
	JSON Codec = jsonCodec{}
)

type rawCodec struct{}

func (rawCodec) ID() byte { return 0 }

func (rawCodec) Marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return []byte(v), nil
	case []byte:
		return bytes.Clone(v), nil
	}
	return nil, fmt.Errorf("tiercache: codec Raw takes string and []byte, not %T", v)
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	switch v := v.(type) {
	case *string:
		*v = string(data)
	case *[]byte:
		*v = append([]byte{}, data...)
	default:
		return fmt.Errorf("tiercache: codec Raw gives string and []byte, not %T", v)
	}
	return nil
}

type jsonCodec struct{}

func (jsonCodec) ID() byte                           { return 1 }
func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// coder is how a cache of V's stores them.
type coder[V any] struct {
	codec  Codec
	codecs [256]Codec // by id, those that can be read

	// keep tells that L1 holds a V as it is, and hands it out: nothing that a
	// caller can do changes it. Otherwise L1 holds its bytes.
	keep bool
}

func newCoder[V any](opts *Options) (*coder[V], error) {
	t := reflect.TypeFor[V]()
	raw := t == reflect.TypeFor[string]() || t == reflect.TypeFor[[]byte]()
	c := &coder[V]{codec: opts.Codec, keep: opts.Shared || immutable(t)}
	if c.codec == nil {
		c.codec = JSON
		if raw {
			c.codec = Raw
		}
	}
	if c.codec == Raw && !raw {
		return nil, fmt.Errorf("tiercache: codec Raw takes string and []byte, not %v", t)
	}
	c.codecs[JSON.ID()] = JSON
	if raw {
		c.codecs[Raw.ID()] = Raw
	}
	for _, codec := range append(opts.Codecs[:len(opts.Codecs):len(opts.Codecs)], c.codec) {
		if codec == nil {
			return nil, errors.New("tiercache: nil among Codecs")
		}
		if codec == Raw && !raw {
			continue // nothing of V's is raw
		}
		id := codec.ID()
		if other := c.codecs[id]; other != nil && !same(other, codec) || id == Raw.ID() && codec != Raw {
			return nil, fmt.Errorf("tiercache: codec %T has the id %d, which is taken: 16 to 255 are free", codec, id)
		}
		c.codecs[id] = codec
	}
	return c, nil
}

// same reports whether two codecs are one. Those that Go does not compare never are.
func same(a, b Codec) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// immutable reports whether a value of t cannot be changed through a copy of it.
func immutable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	case reflect.Array:
		return immutable(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return true
		}
		for i := range t.NumField() {
			if !immutable(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// encode returns the body of v's envelope.
func (c *coder[V]) encode(v V) (string, error) {
	if s, ok := any(&v).(*string); ok && c.codec == Raw {
		return string([]byte{0, 0}) + *s, nil
	}
	if b, ok := any(&v).(*[]byte); ok && c.codec == Raw {
		return newBody(0, 0, *b), nil
	}
	data, err := c.codec.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("tiercache: encode: %w", err)
	}
	return newBody(0, c.codec.ID(), data), nil
}

// decode returns the value of a payload; whoever gets it may change it.
func (c *coder[V]) decode(codec byte, payload string) (v V, err error) {
	known := c.codecs[codec]
	if known == nil {
		return v, fmt.Errorf("tiercache: a value with codec %d, which this cache does not know", codec)
	}
	if s, ok := any(&v).(*string); ok && known == Raw {
		*s = payload
		return v, nil
	}
	err = known.Unmarshal([]byte(payload), &v)
	return v, err
}

// size is what L1 holds of a payload that decoded, in bytes.
func (c *coder[V]) size(codec byte, payload string) int {
	if s, ok := c.codecs[codec].(Sizer); ok && c.keep {
		return s.Size([]byte(payload))
	}
	return len(payload)
}
