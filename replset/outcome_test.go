package replset

import (
	"errors"
	"fmt"
	"testing"
)

func TestParseOutcome(t *testing.T) {
	for _, c := range []struct {
		reply any
		stamp stamp
		err   error // nil, or what errors.Is finds
	}{
		{"ok sk1 7 2 00000000000a", stamp{7, 2, 10}, nil},
		{"ok sk1 7 -1 0", stamp{7, cleared, 0}, nil},
		{"newer sk1 9 0 000000000000", stamp{9, 0, 0}, newerError(9)},
		{"behind", stamp{}, errBehind},
		{"contended", stamp{}, ErrContended},
		{"missing", stamp{}, ErrReplicaMissing},
		{"drifted", stamp{}, ErrReplicaDrifted},
		{"ok", stamp{}, errUnexpected},
		{"ok x", stamp{}, errUnexpected},
		{"newer 9", stamp{}, errUnexpected},
		{"", stamp{}, errUnexpected},
		{"whatever", stamp{}, errUnexpected},
		{nil, stamp{}, errUnexpected},
		{int64(1), stamp{}, errUnexpected},
		{[]any{"ok"}, stamp{}, errUnexpected},
		{serverError("OOM x"), stamp{}, serverError("OOM x")},
	} {
		st, err := parseOutcome(c.reply)
		if !errors.Is(err, c.err) || c.err == nil && (err != nil || st != c.stamp) {
			t.Errorf("%v: got %v, %v, want %v, %v", c.reply, st, err, c.stamp, c.err)
		}
	}
	var foreign *ForeignKeyError
	if _, err := parseOutcome("foreign active:{1} with a space"); !errors.As(err, &foreign) || foreign.Key != "active:{1} with a space" {
		t.Errorf("a foreign key: %v", err)
	}
}

func TestParseExceptions(t *testing.T) {
	type list = []any
	for _, c := range []struct {
		reply any
		want  string
	}{
		{list{}, "[]"},
		{list{int64(1), "redo", int64(3), "newer 5"}, "[{0 redo} {2 newer 5}]"},
		{list{int64(0), "source"}, "[{-1 source}]"},
		{nil, "error"},
		{"OK", "error"},
		{list{int64(1)}, "error"},
		{list{"1", "redo"}, "error"},
		{list{int64(1), int64(2)}, "error"},
		{list{int64(4), "redo"}, "error"},
		{list{int64(-1), "redo"}, "error"},
	} {
		got, err := parseExceptions(c.reply, 3)
		text := fmt.Sprint(got)
		if err != nil {
			text = "error"
			if !errors.Is(err, errUnexpected) {
				t.Errorf("%v: the error is %v, want %v", c.reply, err, errUnexpected)
			}
		}
		if text != c.want {
			t.Errorf("%v: got %s, want %s", c.reply, text, c.want)
		}
	}
}

// Only where no server spoke at all are the rest of its slots left for later.
func TestUnreachable(t *testing.T) {
	refused := errors.New("connection refused")
	for _, c := range []struct {
		outcomes []error
		want     error
	}{
		{[]error{refused}, refused},
		{[]error{refused, errors.New("EOF")}, refused},
		{[]error{refused, nil}, nil},
		{[]error{refused, serverError("CLUSTERDOWN x")}, nil},
		{[]error{refused, errBehind}, nil},
		{[]error{newerError(3), refused}, nil},
		{[]error{&ForeignKeyError{}}, nil},
		{[]error{nil, nil}, nil},
	} {
		if got := unreachable(c.outcomes); got != c.want {
			t.Errorf("%v: got %v, want %v", c.outcomes, got, c.want)
		}
	}
}
