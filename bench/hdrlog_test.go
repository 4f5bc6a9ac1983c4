package bench

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func someIntervals(start time.Time) []LogInterval {
	rng := rand.New(rand.NewPCG(1, 2))
	var log []LogInterval
	for i := range 7 {
		h := hdrhistogram.New(1, int64(time.Minute), 3)
		for range 100 * i {
			_ = h.RecordValue(rng.Int64N(int64(time.Second)))
		}
		// Odd times, on purpose.
		at := start.Add(time.Duration(i)*time.Second + time.Duration(i)*1_234_567)
		log = append(log, LogInterval{Tag: []string{"a/get", "b/set", ""}[i%3], Start: at, End: at.Add(999_999_999), Histogram: h})
	}
	return log
}

func TestHDRLogKeepsExactTimesAndCounts(t *testing.T) {
	for _, start := range []time.Time{
		time.Unix(1_700_000_000, 123_456_789),
		time.Unix(1_700_000_000, 999_999_999),
		time.Unix(1_700_000_000, 0),
		time.Unix(0, 1),
	} {
		want := someIntervals(start)
		var b bytes.Buffer
		if err := WriteHDRLog(&b, start, want); err != nil {
			t.Fatal(err)
		}
		got, err := ReadHDRLog(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("read %d intervals, wrote %d", len(got), len(want))
		}
		for i := range got {
			g, w := got[i], want[i]
			if g.Tag != w.Tag || !g.Start.Equal(w.Start) || !g.End.Equal(w.End) {
				t.Errorf("line %d: got %q %v to %v, want %q %v to %v", i, g.Tag, g.Start, g.End, w.Tag, w.Start, w.End)
			}
			if !g.Histogram.Equals(w.Histogram) || g.Histogram.TotalCount() != w.Histogram.TotalCount() {
				t.Errorf("line %d: got %d values, want the same %d", i, g.Histogram.TotalCount(), w.Histogram.TotalCount())
			}
		}
	}
}

// The format is HdrHistogram's own: its Go reader must read the same, but for the millisecond that its floats lose.
func TestHDRLogIsReadByOthers(t *testing.T) {
	start := time.Unix(1_700_000_000, 987_000_000)
	want := someIntervals(start)
	var b bytes.Buffer
	if err := WriteHDRLog(&b, start, want); err != nil {
		t.Fatal(err)
	}
	r := hdrhistogram.NewHistogramLogReader(&b)
	for i, w := range want {
		h, err := r.NextIntervalHistogram()
		if err != nil || h == nil {
			t.Fatalf("line %d: got %v, %v", i, h, err)
		}
		if h.Tag() != w.Tag || !h.Equals(w.Histogram) {
			t.Errorf("line %d: got tag %q and %d values, want %q and %d", i, h.Tag(), h.TotalCount(), w.Tag, w.Histogram.TotalCount())
		}
		if off := h.StartTimeMs() - w.Start.UnixMilli(); off < -1 || off > 1 {
			t.Errorf("line %d: starts %d ms off", i, off)
		}
		if off := h.EndTimeMs() - w.End.UnixMilli(); off < -1 || off > 1 {
			t.Errorf("line %d: ends %d ms off", i, off)
		}
	}
}

func TestHDRLogOfOthersIsRead(t *testing.T) {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	_ = h.RecordValues(12345, 3)
	enc, err := h.EncodeV2()
	if err != nil {
		t.Fatal(err)
	}
	line := "0.127,1.007,2.769," + string(enc) + "\n"
	absolute := "1441812279.474,1.5,2.769," + string(enc)
	head := "#[Logged with jHiccup version 2.0.6]\n#[Histogram log format version 1.2]\n"
	for name, test := range map[string]struct {
		log  string
		want time.Time
	}{
		"with base":             {head + "#[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09]\n#[BaseTime: 1441812279.474 (seconds since epoch)]\n" + line, time.UnixMilli(1441812279601)},
		"relative without base": {head + "#[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09]\r\n\r\n" + line, time.UnixMilli(1441812279601)},
		"absolute, no newline":  {"\"StartTimestamp\",\"Interval_Length\"\nTag=A," + absolute, time.UnixMilli(1441812279474)},
	} {
		got, err := ReadHDRLog(strings.NewReader(test.log))
		if err != nil || len(got) != 1 {
			t.Errorf("%s: got %v, %v, want one interval", name, got, err)
			continue
		}
		if !got[0].Start.Equal(test.want) || got[0].Histogram.TotalCount() != 3 {
			t.Errorf("%s: got %v with %d values, want %v with 3", name, got[0].Start, got[0].Histogram.TotalCount(), test.want)
		}
	}
}

func TestHDRLogErrors(t *testing.T) {
	for log, want := range map[string]string{
		"#x\nnonsense":                        "line 2: 1 fields, want start, length",
		"1,2,3,nonsense":                      "line 1: the histogram does not decode",
		"x,2,3,HIST":                          `line 1: "x" is not a time in seconds`,
		"1,-2,3,HIST":                         `line 1: "-2" is not a time`,
		"1,2,3,":                              "does not decode",
		"Tag=a":                               "line 1: 1 fields",
		"#[BaseTime: soon (seconds)]":         `"soon" is not a time`,
		"99999999999,2,3,HIST":                `"99999999999" is not a time`,
		"#[StartTime: 1e9 (seconds since)]\n": `"1e9" is not a time`,
	} {
		if _, err := ReadHDRLog(strings.NewReader(log)); err == nil || !strings.HasPrefix(err.Error(), "bench: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", log, err, want)
		}
	}
	start := time.Unix(1_700_000_000, 0)
	for name, change := range map[string]func(*LogInterval){
		"tag":           func(i *LogInterval) { i.Tag = "a b" },
		"before start":  func(i *LogInterval) { i.Start = start.Add(-1) },
		"negative span": func(i *LogInterval) { i.End = i.Start.Add(-1) },
	} {
		log := someIntervals(start)[:1]
		change(&log[0])
		if err := WriteHDRLog(&bytes.Buffer{}, start, log); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	full := errors.New("no space left on device")
	if err := WriteHDRLog(failingWriter{full}, start, someIntervals(start)); !errors.Is(err, full) {
		t.Errorf("full disk: got %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestResultHDRLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Scenario{Name: "test", Variants: []Variant{Func("a", sleeper(time.Millisecond)), Func("b", sleeper(2*time.Millisecond))}}
		o := inBubble(&Options{Load: Load{Mode: Open, Rate: 900, Duration: 3 * time.Second}, Interval: 250 * time.Millisecond})
		r := mustRun(t, s, o)
		var b bytes.Buffer
		if err := r.WriteHDRLog(&b); err != nil {
			t.Fatal(err)
		}
		log, err := ReadHDRLog(&b)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int64{}
		for i, l := range log {
			counts[l.Tag] += l.Histogram.TotalCount()
			if iv := r.Intervals[i]; !l.Start.Equal(iv.Start) || !l.End.Equal(iv.End) || l.Histogram.TotalCount() != iv.Response.Count {
				t.Errorf("line %d: got %v to %v, %d, want %v to %v, %d", i, l.Start, l.End, l.Histogram.TotalCount(), iv.Start, iv.End, iv.Response.Count)
			}
		}
		for _, v := range r.Variants {
			if counts[v.Name+"/op"] != v.Response.Count {
				t.Errorf("%s: the log holds %d, the result %d", v.Name, counts[v.Name+"/op"], v.Response.Count)
			}
		}
	})
}

func FuzzReadHDRLog(f *testing.F) {
	start := time.Unix(1_700_000_000, 123_456_789)
	var b bytes.Buffer
	if err := WriteHDRLog(&b, start, someIntervals(start)[:4]); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("#[StartTime: 1.5\n#[BaseTime: \nTag=,1,2,3,"))
	f.Fuzz(func(t *testing.T, log []byte) {
		got, err := ReadHDRLog(bytes.NewReader(log))
		if err != nil {
			return
		}
		for _, i := range got {
			if i.End.Before(i.Start) {
				t.Errorf("interval %v to %v", i.Start, i.End)
			}
		}
	})
}
