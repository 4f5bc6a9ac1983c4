package main

import (
	"strconv"
	"testing"
)

func TestCRC(t *testing.T) {
	for _, c := range []struct {
		data string
		want uint16
	}{
		{"", 0},
		{"123456789", 0x31c3}, // the check value of the specification
		{"\x00\x00\x00", 0},
		{"foo", 0xaf96},
	} {
		if got := crc16([]byte(c.data)); got != c.want {
			t.Errorf("crc16(%q): got %#04x, want %#04x", c.data, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	table := compute()
	const want = "8cb2a0e5106dcba8f9866476e3dcaec29baaf37e8b09ac6fb24e65f4825d527c"
	if got := table.sum(); got != want {
		t.Errorf("sha256: got %s, want %s", got, want)
	}
	if got := table.largest(); got != 109757 {
		t.Errorf("largest tag: got %d, want 109757", got)
	}
	for slot, n := range table {
		if got := crc16([]byte(strconv.Itoa(int(n)))) % slots; int(got) != slot {
			t.Fatalf("slot %d: tag %d hashes to %d", slot, n, got)
		}
	}
	if len(strconv.Itoa(int(table.largest()))) > width {
		t.Errorf("a column of %d bytes cannot hold %d", width, table.largest())
	}
}
