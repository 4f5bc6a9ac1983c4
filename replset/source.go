package replset

import (
	"context"
	"crypto/rand"
)

// sourceLife is how long a source stays if its owner dies, ms.
const sourceLife = "60000"

// source is a set's content on one node, for scripts that run there: members
// then travel once per node and not once per call.
type source struct {
	set     *Set
	members []string
	how     string // "auto", or "members" for a set and nothing else

	key  string // empty: not there yet
	kind string // "restore" or "members", as lua/source.lua says
}

// ready puts the source in slot, unless it is somewhere already or there is
// nothing to put.
func (s *source) ready(ctx context.Context, slot uint16) error {
	if s.key != "" || len(s.members) == 0 {
		return nil
	}
	key := s.set.replicaKey(slot) + sourceSuffix + rand.Text()
	v, err := s.set.eval(ctx, key, sourceScript, []string{key}, append([]string{sourceLife, s.how}, s.members...))
	if err != nil {
		return err
	}
	kind, ok := v.(string)
	if !ok || kind != "restore" && kind != "members" {
		return unexpected(v)
	}
	s.key, s.kind = key, kind
	return nil
}

// lost forgets a source that is not there any more.
func (s *source) lost() { s.key = "" }

func (s *source) end(ctx context.Context) {
	if s.key != "" {
		_, _ = s.set.backend.Do(ctx, s.key, []string{"DEL", s.key}) // else its life ends it
	}
}
