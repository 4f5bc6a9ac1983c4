// Package msgpack keeps values of a tiercache as MessagePack: about as JSON, in fewer
// bytes, and byte slices as they are.
//
//	cache, err := tiercache.New[Item](shards, &tiercache.Options{Codec: msgpack.Codec{}})
//
// Fields are named by their msgpack tag, or else by their json tag: a type that
// was kept as JSON keeps its names. Times lose their zone and what is below a
// nanosecond, and numbers within an interface come back as int64, uint64 or
// float64, byte slices there as strings.
//
// Whatever a shard holds, decoding it takes memory in proportion to its bytes, and
// returns. The encoding is that of github.com/vmihailenco/msgpack/v5; extensions,
// besides times, are refused.
//
// Errors of Marshal are the caller's, about a type that cannot be encoded. Those of Unmarshal make a cache take the value for a
// miss, and count it in Stats().Corrupt.
package msgpack

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// Codec is a tiercache.Codec. Its errors begin with "msgpack: ".
type Codec struct{}

// ID is 2, as ENVELOPE.md of tiercache has it.
func (Codec) ID() byte { return 2 }

// Marshal returns v's encoding, which is one that Unmarshal takes. A v that holds
// itself ends the program: its encoding has no end.
func (Codec) Marshal(v any) ([]byte, error) {
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	var out bytes.Buffer
	enc.Reset(&out)
	enc.SetCustomStructTag("json")
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("msgpack: encode %T: %w", v, err)
	}
	if _, err := scan(out.Bytes()); err != nil {
		return nil, fmt.Errorf("msgpack: encode %T: %w", v, err)
	}
	return out.Bytes(), nil
}

// Unmarshal decodes data, which is one value and nothing else.
func (Codec) Unmarshal(data []byte, v any) (err error) {
	bodies, err := scan(data)
	if err != nil {
		return fmt.Errorf("msgpack: decode: %w", err)
	}
	// The library panics where a map's key cannot be one, and on a few other things.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("msgpack: decode into %T: %v", v, p)
		}
	}()
	dec := msgpack.GetDecoder()
	r := &reader{Reader: bytes.NewReader(data), size: len(data), bodies: bodies}
	dec.Reset(r)
	dec.SetCustomStructTag("json")
	dec.UseLooseInterfaceDecoding(true)
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("msgpack: decode into %T: %w", v, err)
	}
	if r.Len() > 0 {
		return fmt.Errorf("msgpack: decode into %T: %d bytes are left", v, r.Len())
	}
	msgpack.PutDecoder(dec)
	return nil
}
