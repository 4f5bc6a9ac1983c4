// Package compress keeps values of a tiercache compressed: with S2, which costs little
// time, or with Zstandard, which is denser.
//
//	codec, err := compress.New(nil)
//	if err != nil {
//		return err
//	}
//	cache, err := tiercache.New[Page](shards, &tiercache.Options{Codec: codec})
//
// Values below Options.Above, and those that do not get shorter, are kept as they
// are. A Codec reads what any other of this package wrote, by whichever method.
//
// L1 holds decoded values where tiercache.Options.Shared or an immutable type allows
// it, and counts them at their full size; elsewhere it holds them compressed, and
// each hit decompresses.
//
// What is found on a shard never takes more than Options.MaxBytes to decompress.
//
// New refuses options that are out of range, and codecs of one id. Errors of Unmarshal, a value that is cut short or larger than that, make a cache
// take it for a miss, and count it in Stats().Corrupt.
package compress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/shardkit/shardkit/tiercache"
)

// Method is a way to compress.
type Method byte

const (
	S2   Method = iota + 1 // a block of github.com/klauspost/compress/s2, an extension of Snappy
	Zstd                   // a frame of RFC 8878
)

// plain is the method of values that are not compressed.
const plain Method = 0

// Options of a Codec. The zero value, and a nil pointer, are usable.
type Options struct {
	// Codec turns values into the bytes that are compressed. nil means tiercache.JSON;
	// tiercache.Raw is for strings and byte slices.
	Codec tiercache.Codec

	// Codecs are others whose values are read. Raw and JSON always are.
	Codecs []tiercache.Codec

	// Method is for what is written. 0 means S2.
	Method Method

	// Above is the size in bytes above which values are compressed. 0 means 1024, a
	// negative number compresses all.
	Above int

	// MaxBytes bounds a value before it is compressed, and after: larger ones are
	// written as they are, and an error to read. 0 means 64 MiB; at most 4 GiB - 1.
	MaxBytes int64
}

const (
	id              = 3
	defaultAbove    = 1024
	defaultMaxBytes = 64 << 20

	// The head of a payload: the method, the id of the inner codec and, unless plain, the
	// size before compression (ENVELOPE.md).
	plainHead  = 2
	packedHead = plainHead + 4
)

// Codec is a tiercache.Codec and a tiercache.Sizer. Its errors begin with "compress: ".
type Codec struct {
	opts    Options
	codecs  [256]tiercache.Codec // by id
	encoder *zstd.Encoder        // where Method is Zstd
	decoder *zstd.Decoder
}

// New returns a Codec. It holds a few MiB once it has been used, with Zstd up to some
// more for each processor, and needs no closing. opts may be nil.
func New(opts *Options) (*Codec, error) {
	c := &Codec{}
	if opts != nil {
		c.opts = *opts
	}
	o := &c.opts
	if o.Codec == nil {
		o.Codec = tiercache.JSON
	}
	if o.Method == 0 {
		o.Method = S2
	}
	if o.Above == 0 {
		o.Above = defaultAbove
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	switch {
	case o.Method > Zstd:
		return nil, fmt.Errorf("compress: Method %d: there are S2 and Zstd", o.Method)
	case o.MaxBytes < 0 || o.MaxBytes > math.MaxUint32:
		return nil, fmt.Errorf("compress: MaxBytes %d: above zero, and at most 4 GiB - 1", o.MaxBytes)
	}
	for _, inner := range append([]tiercache.Codec{tiercache.Raw, tiercache.JSON, o.Codec}, o.Codecs...) {
		if inner == nil {
			return nil, errors.New("compress: nil among Codecs")
		}
		n := inner.ID()
		if other := c.codecs[n]; n == id || other != nil && other != inner {
			return nil, fmt.Errorf("compress: codec %T has the id %d, which is taken", inner, n)
		}
		c.codecs[n] = inner
	}
	var err error
	if o.Method == Zstd {
		c.encoder, err = zstd.NewWriter(nil, zstd.WithLowerEncoderMem(true))
		if err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
	}
	// The limit is the cap of what it decodes into, which unpack makes of the size that
	// the head claims.
	c.decoder, err = zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return c, nil
}

// ID is 3, as ENVELOPE.md of tiercache has it.
func (*Codec) ID() byte { return id }

// Marshal returns v's bytes of the inner codec, compressed if that makes them fewer.
func (c *Codec) Marshal(v any) ([]byte, error) {
	data, err := c.opts.Codec.Marshal(v)
	if err != nil {
		return nil, err
	}
	head := []byte{byte(plain), c.opts.Codec.ID()}
	if len(data) > c.opts.Above && int64(len(data)) <= c.opts.MaxBytes {
		head := binary.BigEndian.AppendUint32([]byte{byte(c.opts.Method), head[1]}, uint32(len(data)))
		if packed := c.pack(head, data); len(packed) < plainHead+len(data) {
			return packed, nil
		}
	}
	return append(head, data...), nil
}

func (c *Codec) pack(head, data []byte) []byte {
	if c.opts.Method == Zstd {
		return c.encoder.EncodeAll(data, head)
	}
	most := s2.MaxEncodedLen(len(data))
	if most < 0 {
		return append(head, data...) // beyond what a block holds
	}
	out := make([]byte, packedHead+most)
	copy(out, head)
	return out[:packedHead+len(s2.Encode(out[packedHead:], data))]
}

// Unmarshal decompresses data, and has the codec decode it that wrote it.
func (c *Codec) Unmarshal(data []byte, v any) error {
	if len(data) < plainHead {
		return errShort
	}
	inner := c.codecs[data[1]]
	if inner == nil {
		return fmt.Errorf("compress: a value with codec %d inside, which is not among Codecs", data[1])
	}
	whole, err := c.unpack(data)
	if err != nil {
		return err
	}
	return inner.Unmarshal(whole, v)
}

var (
	errShort = errors.New("compress: the data ends early")
	errSize  = errors.New("compress: the data is not of the size that it claims")
)

// unpack returns the bytes that the inner codec wrote.
func (c *Codec) unpack(data []byte) ([]byte, error) {
	method := Method(data[0])
	if method == plain {
		return data[plainHead:], nil
	}
	if len(data) < packedHead {
		return nil, errShort
	}
	size := int64(binary.BigEndian.Uint32(data[plainHead:]))
	if size > c.opts.MaxBytes {
		return nil, fmt.Errorf("compress: a value of %d bytes: MaxBytes is %d", size, c.opts.MaxBytes)
	}
	data = data[packedHead:]
	var whole []byte
	var err error
	switch method {
	case S2:
		if n, err := s2.DecodedLen(data); err != nil || int64(n) != size {
			return nil, errSize
		}
		whole, err = s2.Decode(make([]byte, size), data)
	case Zstd:
		whole, err = c.decoder.DecodeAll(data, make([]byte, 0, size))
	default:
		return nil, fmt.Errorf("compress: a value of method %d, which is not known", method)
	}
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if int64(len(whole)) != size {
		return nil, errSize
	}
	return whole, nil
}

// Size is the number of bytes before compression.
func (c *Codec) Size(data []byte) int {
	if len(data) >= packedHead && Method(data[0]) != plain {
		return int(binary.BigEndian.Uint32(data[plainHead:]))
	}
	return len(data) - min(len(data), plainHead)
}
