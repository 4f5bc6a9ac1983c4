package tiercache

import (
	"encoding/binary"
	"strings"
)

// An envelope is a value as its shard holds it (ENVELOPE.md).
type envelope struct {
	epoch, sequence int64
	expiry          int64 // ms by the shard's clock
	outage          int64
	flags, codec    byte
	tags            []string
	payload         string
}

const (
	magic      = "tc\x01"
	headSize   = len(magic) + 4*8 // written by the scripts
	bodySize   = 2                // flags and codec
	flagAbsent = 1                // the loader said that there is nothing
	flagMarker = 2                // no value: a load is under way; the payload is its token
	flagTagged = 4                // tags stand before the payload
	knownFlags = flagAbsent | flagMarker | flagTagged
	tokenSize  = 16
)

// parseEnvelope reads an envelope. ok is false for anything else, and for one
// with flags of a later version.
func parseEnvelope(s string) (e envelope, ok bool) {
	e, ok = parseHead(s)
	if !ok || len(s) < headSize+bodySize {
		return e, false
	}
	e.flags, e.codec, e.payload = s[headSize], s[headSize+1], s[headSize+bodySize:]
	ok = e.flags&^knownFlags == 0
	if ok && e.flags&flagTagged != 0 {
		e.tags, e.payload, ok = cutTags(e.payload)
	}
	return e, ok
}

// parseHead reads what scripts write of an envelope.
func parseHead(s string) (e envelope, ok bool) {
	if len(s) < headSize || s[:len(magic)] != magic {
		return e, false
	}
	return envelope{epoch: integerAt(s, 0), sequence: integerAt(s, 1), expiry: integerAt(s, 2), outage: integerAt(s, 3)}, true
}

func (e *envelope) head() string {
	b := make([]byte, 0, headSize)
	b = append(b, magic...)
	for _, n := range []int64{e.epoch, e.sequence, e.expiry, e.outage} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return string(b)
}

// integerAt reads the i-th integer of a head.
func integerAt(s string, i int) int64 {
	var b [8]byte
	copy(b[:], s[len(magic)+8*i:])
	return int64(binary.BigEndian.Uint64(b[:]))
}

func newBody(flags, codec byte, payload []byte) string {
	var b strings.Builder
	b.Grow(bodySize + len(payload))
	b.WriteByte(flags)
	b.WriteByte(codec)
	b.Write(payload)
	return b.String()
}

var absentBody = newBody(flagAbsent, 0, nil)

func (e *envelope) absent() bool { return e.flags&flagAbsent != 0 }
func (e *envelope) marker() bool { return e.flags&flagMarker != 0 }
