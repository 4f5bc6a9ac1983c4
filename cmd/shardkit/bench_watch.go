package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/shardkit/shardkit/bench/scenarios"
)

// benchWatch shows how far a run is: on one line of a terminal, else by a line for each part. It writes to the standard
// error, as the standard output is for the results.
type benchWatch struct {
	con      console
	terminal bool
	columns  int // of the terminal, 0 if unknown
	told     int
	drawn    time.Time
	width    int
}

func newBenchWatch(con console) *benchWatch {
	w := &benchWatch{con: con}
	if f, isFile := con.err.(*os.File); isFile && isTerminal(f) {
		w.terminal = true
		w.columns, _, _ = term.GetSize(int(f.Fd()))
	}
	return w
}

func (w *benchWatch) update(p scenarios.Progress) {
	if !w.terminal {
		if p.Number > w.told {
			w.told = p.Number
			fmt.Fprintf(w.con.err, "measuring %s (%d of %d)\n", p.Part, p.Number, p.Of)
		}
		return
	}
	if time.Since(w.drawn) < 100*time.Millisecond {
		return
	}
	w.drawn = time.Now()
	w.draw(watchLine(p))
}

func watchLine(p scenarios.Progress) string {
	filled := int(barWidth * p.Done)
	line := fmt.Sprintf("  [%s%s] %s, %d of %d: %s", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), p.Part, p.Number, p.Of, p.Doing)
	if p.ETA > 0 {
		line += fmt.Sprintf(", about %s left", p.ETA.Round(time.Second))
	}
	return line
}

// draw overwrites the last line, whatever its length. A line as wide as the terminal would begin a new one.
func (w *benchWatch) draw(line string) {
	if w.columns > 0 {
		line = line[:min(len(line), w.columns-1)]
	}
	fmt.Fprintf(w.con.err, "\r%-*s", w.width, line)
	w.width = len(line)
}

func (w *benchWatch) end() {
	if w.terminal && w.width > 0 {
		fmt.Fprintf(w.con.err, "\r%s\r", strings.Repeat(" ", w.width))
	}
}
