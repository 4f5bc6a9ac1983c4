package hot

// A tally is the reads of the present pane of time, as long as the window, and of
// the one before. Those within the window are estimated by taking the reads of
// the last pane as evenly spread.
type tally struct {
	pane      uint32 // its number, modulo 2^paneBits
	cur, prev uint32
}

// How a tally and a fingerprint share a word.
const (
	printBits = 18
	paneBits  = 10
	readsBits = (64 - printBits - paneBits) / 2

	// MaxReads is the highest number of reads that is counted.
	MaxReads = 1<<readsBits - 1
)

func pack(print uint64, t tally) uint64 {
	return print<<(64-printBits) | uint64(t.pane)<<(2*readsBits) | uint64(t.cur)<<readsBits | uint64(t.prev)
}

func unpack(w uint64) (print uint64, t tally) {
	return w >> (64 - printBits), tally{uint32(w >> (2 * readsBits) % (1 << paneBits)), uint32(w >> readsBits % (1 << readsBits)), uint32(w % (1 << readsBits))}
}

func pane(now, window int64) uint32 { return uint32(uint64(now)/uint64(window)) % (1 << paneBits) }

// roll forgets what the window has left behind.
func (t *tally) roll(now, window int64) {
	switch p := pane(now, window); (p - t.pane) % (1 << paneBits) {
	case 0, 1<<paneBits - 1: // or a clock that was read just before another's
	case 1:
		t.pane, t.prev, t.cur = p, t.cur, 0
	default:
		t.pane, t.prev, t.cur = p, 0, 0
	}
}

func (t *tally) sum() uint32 { return t.cur + t.prev }

func (t *tally) add() { t.cur = min(t.cur+1, MaxReads) }

// takeOff takes one off, of the older ones first.
func (t *tally) takeOff() {
	if t.prev > 0 {
		t.prev--
	} else {
		t.cur--
	}
}

func (t *tally) estimate(now, window int64) uint32 {
	return t.cur + uint32(uint64(t.prev)*(uint64(window)-uint64(now)%uint64(window))/uint64(window))
}
