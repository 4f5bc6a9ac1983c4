package bench

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
)

// Failures counts the errors of one sort that a variant's operations returned.
type Failures struct {
	Kind  string   `json:"kind"`
	Count int64    `json:"count"`
	Texts []string `json:"texts"` // the first few that differ
}

// DefaultClassify names the sort of an error: "timeout", "canceled", "connection", the upper-case word that a server's
// error reply begins with ("MOVED", "ERR"), else "other".
func DefaultClassify(err error) string {
	var netErr net.Error
	var opErr *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &opErr):
		return "connection"
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	word, _, _ := strings.Cut(err.Error(), " ")
	if len(word) >= 3 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return word
	}
	return "other"
}

const (
	maxFailureKinds = 20
	maxFailureTexts = 3
)

// failures tallies one variant's errors.
type failures struct {
	mu     sync.Mutex
	count  int64
	byKind map[string]*Failures
}

func (f *failures) add(kind string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.byKind == nil {
		f.byKind = map[string]*Failures{}
	}
	k := f.byKind[kind]
	if k == nil && len(f.byKind) >= maxFailureKinds {
		// A classifier that returns the whole text must not fill the memory.
		kind = "other"
		k = f.byKind[kind]
	}
	if k == nil {
		k = &Failures{Kind: kind}
		f.byKind[kind] = k
	}
	k.Count++
	if len(k.Texts) < maxFailureTexts {
		if text := err.Error(); !slices.Contains(k.Texts, text) {
			k.Texts = append(k.Texts, text)
		}
	}
}

// list returns the failures, most frequent first.
func (f *failures) list() []Failures {
	f.mu.Lock()
	defer f.mu.Unlock()
	var l []Failures
	for _, k := range f.byKind {
		l = append(l, *k)
	}
	slices.SortFunc(l, func(a, b Failures) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	return l
}

func (f *failures) total() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}
