package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// LogInterval is one line of an HdrHistogram interval log.
type LogInterval struct {
	// Tag is "variant/kind" in the logs of this package. No spaces, commas or line breaks; may be empty.
	Tag string

	Start, End time.Time

	// Histogram of latencies in nanoseconds.
	Histogram *hdrhistogram.Histogram
}

// WriteHDRLog writes the result's response times as an HdrHistogram interval log (format 1.3), one line for each
// interval, variant and kind, tagged "variant/kind". HdrHistogram's own tools read and plot it. Marks are comments in its head.
func (r *Result) WriteHDRLog(w io.Writer) error {
	var log []LogInterval
	for _, i := range r.Intervals {
		h, err := i.Histogram()
		if err != nil {
			return err
		}
		log = append(log, LogInterval{Tag: i.Variant + "/" + i.Kind, Start: i.Start, End: i.End, Histogram: h})
	}
	for _, m := range r.Marks {
		if _, err := fmt.Fprintf(w, "#[%s]\n", m); err != nil {
			return fmt.Errorf("bench: cannot write the interval log: %w: free some space or choose another path", err)
		}
	}
	return WriteHDRLog(w, r.Measured, log)
}

// WriteHDRLog writes intervals, which begin at start or later. Times keep their nanoseconds: lines hold them relative
// to the base time in the head, where a double, which is what other readers keep them in, still tells nanoseconds apart.
//
// The writer that comes with hdrhistogram-go rounds the base time down to seconds, which moves every line.
func WriteHDRLog(w io.Writer, start time.Time, intervals []LogInterval) error {
	b := bufio.NewWriter(w)
	at := seconds(start.UnixNano())
	fmt.Fprintf(b, "#[Logged with shardkit bench]\n#[Histogram log format version %s]\n", hdrhistogram.HISTOGRAM_LOG_FORMAT_VERSION)
	fmt.Fprintf(b, "#[StartTime: %s (seconds since epoch), %s]\n", at, start.UTC().Format(time.RFC3339Nano))
	fmt.Fprintf(b, "#[BaseTime: %s (seconds since epoch)]\n", at)
	fmt.Fprintf(b, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n")
	for _, i := range intervals {
		if strings.ContainsAny(i.Tag, ", \r\n") {
			return fmt.Errorf("bench: tag %q of an interval holds a comma, space or line break: rename it", i.Tag)
		}
		if i.Start.Before(start) || i.End.Before(i.Start) {
			return fmt.Errorf("bench: interval %v to %v lies before the log's start %v, or ends before it begins", i.Start, i.End, start)
		}
		payload, err := i.Histogram.EncodeV2()
		if err != nil {
			return fmt.Errorf("bench: encode an interval's histogram: %w", err)
		}
		if i.Tag != "" {
			fmt.Fprintf(b, "Tag=%s,", i.Tag)
		}
		// The maximum is in milliseconds by convention.
		fmt.Fprintf(b, "%s,%s,%.6f,%s\n", seconds(int64(i.Start.Sub(start))), seconds(int64(i.End.Sub(i.Start))),
			float64(i.Histogram.Max())/1e6, payload)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("bench: cannot write the interval log: %w: free some space or choose another path", err)
	}
	return nil
}

// ReadHDRLog reads an interval log, of this package or of another HdrHistogram implementation, with times to the
// nanosecond where the log has them. Errors name the line.
func ReadHDRLog(r io.Reader) ([]LogInterval, error) {
	var log logReader
	b := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := b.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("bench: read the interval log, line %d: %w", n, err)
		}
		if lineErr := log.line(strings.TrimRight(line, "\r\n")); lineErr != nil {
			return nil, fmt.Errorf("bench: read the interval log, line %d: %w", n, lineErr)
		}
		if err != nil {
			return log.intervals, nil
		}
	}
}

type logReader struct {
	start, base       int64
	hasStart, hasBase bool
	intervals         []LogInterval
}

func (r *logReader) line(s string) (err error) {
	switch {
	case s == "" || s[0] == '"':
		return nil
	case s[0] == '#':
		return r.comment(s)
	}
	i := LogInterval{}
	if rest, ok := strings.CutPrefix(s, "Tag="); ok {
		i.Tag, s, _ = strings.Cut(rest, ",")
	}
	f := strings.Split(s, ",")
	if len(f) != 4 {
		return fmt.Errorf("%d fields, want start, length, maximum and histogram", len(f))
	}
	start, err := nanoseconds(f[0])
	if err != nil {
		return err
	}
	length, err := nanoseconds(f[1])
	if err != nil {
		return err
	}
	if i.Histogram, err = hdrhistogram.Decode([]byte(f[3])); err != nil {
		return fmt.Errorf("the histogram does not decode: %w", err)
	}
	if !r.hasStart {
		r.start, r.hasStart = start, true
	}
	if !r.hasBase {
		// The convention of HdrHistogram: times more than a year before the start must be relative to it.
		if r.hasBase = true; start < r.start-int64(365*24*time.Hour) {
			r.base = r.start
		}
	}
	if r.base+start < 0 || r.base+start+length < 0 {
		return errors.New("the time is after the year 2262")
	}
	i.Start = time.Unix(0, r.base+start).UTC()
	i.End = i.Start.Add(time.Duration(length))
	i.Histogram.SetTag(i.Tag)
	i.Histogram.SetStartTimeMs(i.Start.UnixMilli())
	i.Histogram.SetEndTimeMs(i.End.UnixMilli())
	r.intervals = append(r.intervals, i)
	return nil
}

func (r *logReader) comment(s string) (err error) {
	if rest, ok := strings.CutPrefix(s, "#[StartTime: "); ok {
		r.hasStart = true
		r.start, err = nanoseconds(firstWord(rest))
	} else if rest, ok := strings.CutPrefix(s, "#[BaseTime: "); ok {
		r.hasBase = true
		r.base, err = nanoseconds(firstWord(rest))
	}
	return err
}

func firstWord(s string) string {
	w, _, _ := strings.Cut(s, " ")
	return strings.TrimRight(w, "],")
}

func seconds(ns int64) string { return fmt.Sprintf("%d.%09d", ns/1e9, ns%1e9) }

// nanoseconds parses decimal seconds without a float, which would lose what this log is careful to keep.
func nanoseconds(s string) (int64, error) {
	whole, frac, _ := strings.Cut(s, ".")
	frac = (frac + "000000000")[:9]
	n, err := strconv.ParseUint(whole, 10, 33)
	if err == nil {
		var f uint64
		if f, err = strconv.ParseUint(frac, 10, 32); err == nil {
			return int64(n*1e9 + f), nil
		}
	}
	return 0, fmt.Errorf("%q is not a time in seconds", s)
}
