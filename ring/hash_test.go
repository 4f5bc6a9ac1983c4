package ring

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Keys as people name them fill the buckets as evenly as random ones: the squares of the differences are what chance makes them.
func TestHashIsEven(t *testing.T) {
	families := []struct {
		name string
		key  func(i int) string
	}{
		{"numbers", func(i int) string { return fmt.Sprint(i) }},
		{"padded", func(i int) string { return fmt.Sprintf("%08d", i) }},
		{"user:n", func(i int) string { return fmt.Sprintf("user:%d", i) }},
		{"n:user", func(i int) string { return fmt.Sprintf("%d:user", i) }},
		{"hex", func(i int) string { return fmt.Sprintf("%x", i) }},
		{"3 bytes", func(i int) string { return string([]byte{byte(i), byte(i >> 8), byte(i >> 16)}) }},
		{"little-endian", func(i int) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(i))) }},
		{"big-endian", func(i int) string { return string(binary.BigEndian.AppendUint64(nil, uint64(i))) }},
		{"multiples", func(i int) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(i)<<20)) }},
		{"16 bytes, changing low", func(i int) string { return fmt.Sprintf("%08d%08d", i, 0) }},
		{"long prefix", func(i int) string { return strings.Repeat("tenant:", 10) + fmt.Sprint(i) }},
		{"long suffix", func(i int) string { return fmt.Sprint(i) + strings.Repeat(":tenant", 10) }},
		{"in the middle", func(i int) string { return fmt.Sprintf("cache:v1:%09d:a long name for a field", i) }},
		{"lengths", func(i int) string { return strings.Repeat("\x00", i%2000) + fmt.Sprint(i/2000) }},
	}
	const cells = 1 << 10
	keys := max(times(200), 20) * 1000
	for _, f := range families {
		made := make([]string, keys)
		for i := range made {
			made[i] = f.key(i)
		}
		for _, h := range []struct {
			name string
			cell func(string) uint64
		}{
			{"the table's hash", func(s string) uint64 { return sum64(s) >> 54 }},
			{"low bits of the table's hash", func(s string) uint64 { return sum64(s) % cells }},
			{"the circle's hash", func(s string) uint64 { return uint64(sum32(s)) >> 22 }},
		} {
			var counts [cells]float64
			for _, key := range made {
				counts[h.cell(key)]++
			}
			mean, square := float64(keys)/cells, 0.0
			for _, c := range counts {
				square += (c - mean) * (c - mean) / mean
			}
			// Chi-square of 1023 degrees of freedom, as a normal variable. FNV-1a is far too even on numbers of equal length; only too
			// uneven is wrong.
			if z := (square - (cells - 1)) / math.Sqrt(2*(cells-1)); z > 6 {
				t.Errorf("%s, keys of the kind %s: %.1f standard deviations too uneven", h.name, f.name, z)
			}
		}
	}
}

// The golden file is of the owners of these keys: a table is pinned as a whole.
func TestGoldenKeysMeetEveryBucket(t *testing.T) {
	var met [1 << 16]bool
	for i := range 1_000_000 {
		met[sum64(strconv.Itoa(i))>>48] = true
	}
	if b := slices.Index(met[:], false); b >= 0 {
		t.Errorf("no key is in bucket %d", b)
	}
}

// One bit of the key changes each bit of the hash with probability 1/2.
func TestHashAvalanche(t *testing.T) {
	rnd := random(t)
	samples := 4000
	for _, n := range []int{1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64} {
		if raceEnabled && n > 9 {
			continue
		}
		for bit := 0; bit < 8*n; bit += 1 + n/8 {
			var flips [64]int
			for range samples {
				key := make([]byte, n)
				for i := range key {
					key[i] = byte(rnd.Uint32())
				}
				before := sum64(string(key))
				key[bit/8] ^= 1 << (bit % 8)
				for diff := before ^ sum64(string(key)); diff != 0; diff &= diff - 1 {
					flips[bits.TrailingZeros64(diff)]++
				}
			}
			for out, f := range flips {
				// Seven standard deviations, for 36,000 pairs of bits are looked at. One byte has 256 values, and pairs of them
				// repeat: a wider margin.
				margin := 0.5/math.Sqrt(float64(samples))*7 + 0.5/math.Sqrt(128)*4/math.Pow(256, float64(min(n, 3)-1))
				if p := float64(f) / float64(samples); math.Abs(p-0.5) > margin {
					t.Errorf("%d bytes: bit %d flips bit %d with probability %.3f", n, bit, out, p)
				}
			}
		}
	}
}

// The loads of short keys overlap: their length must tell them apart.
func TestHashTellsLengthsApart(t *testing.T) {
	seen := map[uint64]string{}
	for n := range 200 {
		for _, c := range []string{"a", "\x00", "\xff"} {
			key := strings.Repeat(c, n)
			if other, ok := seen[sum64(key)]; ok && other != key {
				t.Errorf("one hash for %q and %q", key, other)
			}
			seen[sum64(key)] = key
		}
	}
}

// The published vectors of FNV-1a and fmix32, which sum32 is made of.
func TestSum32(t *testing.T) {
	fmix32 := func(h uint32) uint32 {
		h = (h ^ h>>16) * 0x85ebca6b
		h = (h ^ h>>13) * 0xc2b2ae35
		return h ^ h>>16
	}
	// http://www.isthe.com/chongo/src/fnv/test_fnv.c
	for text, fnv1a := range map[string]uint32{"": 0x811c9dc5, "a": 0xe40c292c, "foobar": 0xbf9cf968} {
		if got := sum32(text); got != fmix32(fnv1a) {
			t.Errorf("sum32(%q): got %08x, want %08x", text, got, fmix32(fnv1a))
		}
	}
}

func TestConstants(t *testing.T) {
	for n, c := range map[float64]uint64{2: sqrt2, 3: sqrt3, 5: sqrt5} {
		// The fraction by integer square root, from the high bit on: the greatest c for which (whole + c/2^64)^2 <= n.
		whole := uint64(math.Sqrt(n))
		var root uint64
		for bit := uint64(1) << 63; bit != 0; bit >>= 1 {
			try := root | bit
			// (whole*2^64 + try)^2 = whole^2*2^128 + 2*whole*try*2^64 + try^2
			square, _ := bits.Mul64(try, try)
			over, mid := bits.Mul64(2*whole, try)
			_, carry := bits.Add64(mid, square, 0)
			if whole*whole+over+carry < uint64(n) {
				root = try
			}
		}
		if root != c {
			t.Errorf("fraction of the square root of %v: got %x, want %x", n, c, root)
		}
	}
}
