package replset

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// scriptRung writes by scripts.
type scriptRung struct{ set *Set }

func (r scriptRung) node(c *change, addr string) stepper {
	n := &nodeSteps{keySteps: keySteps{r.set, c}, node: r.set.nodeAt(addr)}
	if c.kind == replace {
		n.source = source{set: r.set, members: c.add, how: "auto"}
		if n.node.noRestore.isSet() {
			n.source.how = "members"
		}
	}
	return n
}

// home takes the number by compare-and-set: read what stands there, then write
// if it still does. An attempt that lands late finds another number and does
// nothing.
func (r scriptRung) home(ctx context.Context, c *change) error {
	s := r.set
	replica := s.replicaKey(s.home)
	return s.patiently(ctx, s.opts.Patience, func() error {
		v, err := s.backend.Do(ctx, replica, []string{"GET", replica + stampSuffix})
		if err != nil {
			v = err // WRONGTYPE is told by readStamp
		}
		before, err := readStamp(replica+stampSuffix, v)
		if err != nil && !s.adopts(err) {
			return err
		}
		if c.floor != 0 && before.number != c.before.number {
			return errMovedOn
		}
		c.number, c.before = 0, before
		v, err = s.eval(ctx, replica, applyScript, s.applyKeys(s.home, false), s.applyArgs(c, false))
		if err != nil && code(err) == "TRYAGAIN" {
			v, err = s.eval(ctx, replica, applyScript, s.applyKeys(s.home, true), s.applyArgs(c, true))
		}
		if err != nil {
			return err
		}
		after, err := parseOutcome(v)
		if err != nil {
			return err
		}
		c.number, c.count, c.digest = after.number, after.count, after.digest
		return nil
	})
}

// keySteps writes one replica a call, with its keys declared, so the calls
// follow MOVED and ASK like any command.
type keySteps struct {
	set *Set
	c   *change
}

func (k keySteps) end(context.Context) {}

func (k keySteps) step(ctx context.Context, slots []uint16) []error {
	outcomes := make([]error, len(slots))
	k.pipeline(ctx, slots, outcomes, "", script.byHash, false)
	k.pipeline(ctx, slots, outcomes, "NOSCRIPT", script.inFull, false)
	k.pipeline(ctx, slots, outcomes, "TRYAGAIN", script.inFull, true)
	return outcomes
}

// pipeline sends the script, in one of its forms, for those slots whose outcome
// so far has the given code.
func (k keySteps) pipeline(ctx context.Context, slots []uint16, outcomes []error,
	only string, form func(script, []string, []string) []string, moving bool,
) {
	s := k.set
	args := s.applyArgs(k.c, moving)
	var todo []int
	var keys []string
	var cmds [][]string
	for i, slot := range slots {
		if only != "" && (outcomes[i] == nil || code(outcomes[i]) != only) {
			continue
		}
		declared := s.applyKeys(slot, moving)
		todo, keys, cmds = append(todo, i), append(keys, declared[0]), append(cmds, form(applyScript, declared, args))
	}
	if len(todo) == 0 {
		return
	}
	for n, v := range s.backend.Pipeline(ctx, keys, cmds) {
		_, outcomes[todo[n]] = parseOutcome(v)
	}
}

func (s *Set) applyKeys(slot uint16, moving bool) []string {
	replica := s.replicaKey(slot)
	if moving {
		return []string{replica, replica + stampSuffix}
	}
	return []string{replica, replica + stampSuffix, replica + absentSuffix}
}

func (s *Set) applyArgs(c *change, moving bool) []string {
	args := make([]string, 0, 10+len(c.add)+len(c.remove))
	number, count, digest := "", "", ""
	if c.number != 0 {
		number = strconv.FormatInt(c.number, 10)
	}
	if c.number != 0 || c.kind != delta {
		count, digest = strconv.Itoa(c.count), fmt.Sprintf("%012x", c.digest)
	}
	args = append(args, [...]string{"replace", "delta", "clear"}[c.kind], number,
		strconv.FormatInt(c.before.number, 10), strconv.FormatInt(c.floor, 10), count, digest,
		bit(s.opts.Adopt), bit(moving), clearedLife, strconv.Itoa(len(c.add)))
	return append(append(args, c.add...), c.remove...)
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// parseOutcome reads apply.lua's reply.
func parseOutcome(v any) (stamp, error) {
	text, ok := v.(string)
	if !ok {
		return stamp{}, unexpected(v)
	}
	what, rest, _ := strings.Cut(text, " ")
	st, isStamp := parseStamp(rest)
	switch {
	case what == "ok" && isStamp:
		return st, nil
	case what == "newer" && isStamp:
		return st, newerError(st.number)
	case what == "foreign":
		return st, &ForeignKeyError{Key: rest}
	}
	switch what {
	case "behind":
		return st, errBehind
	case "contended":
		return st, ErrContended
	case "missing":
		return st, fmt.Errorf("%w: publish the set first", ErrReplicaMissing)
	case "drifted":
		return st, fmt.Errorf("%w: publish again, or reconcile", ErrReplicaDrifted)
	}
	return st, fmt.Errorf("%w: %q", errUnexpected, text)
}
