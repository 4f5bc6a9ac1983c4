package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// bar draws progress on one line of a terminal. Where the output is not a
// terminal, only its final line appears.
type bar struct {
	out   io.Writer
	plain bool
	unit  string
	start time.Time
	drawn time.Time
}

func newBar(con console, unit string) *bar {
	return &bar{out: con.out, plain: con.plain, unit: unit, start: time.Now()}
}

const barWidth = 30

func (b *bar) update(done, total int) {
	now := time.Now()
	if b.plain || now.Sub(b.drawn) < 50*time.Millisecond {
		return
	}
	b.drawn = now
	fmt.Fprintf(b.out, "\r  %s", b.line(done, total, now.Sub(b.start)))
}

func (b *bar) finish(done, total int) {
	if !b.plain {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
	fmt.Fprintf(b.out, "  %s\n", b.line(done, total, time.Since(b.start)))
}

// clear takes an unfinished bar off the terminal.
func (b *bar) clear() {
	if !b.plain && !b.drawn.IsZero() {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}

func (b *bar) line(done, total int, took time.Duration) string {
	filled := barWidth * done / max(total, 1)
	rate := float64(done) / max(took.Seconds(), 1e-9)
	return fmt.Sprintf("[%s%s] %s of %s %s, %s a second",
		strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled),
		thousands(done), thousands(total), b.unit, thousands(int(rate)))
}

// thousands writes 16384 as 16,384.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// seconds writes a duration with what matters of it.
func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// wrap breaks a text into lines of at most 96 columns, each after the indent.
func wrap(text, indent string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+len(word) > 96:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
