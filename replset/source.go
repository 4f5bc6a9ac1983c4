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

	used []string // every key that may be there
}

// ready puts the source in slot, unless it is somewhere already or there is
// nothing to put.
func (s *source) ready(ctx context.Context, slot uint16) error {
	if s.key != "" || len(s.members) == 0 {
		return nil
	}
	key := s.set.replicaKey(slot) + sourceSuffix + rand.Text()
	s.used = append(s.used, key) // whatever becomes of the reply
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

// lost gives up a source that its node does not find, or cannot use.
func (s *source) lost() { s.key = "" }

func (s *source) end(ctx context.Context) {
	for _, key := range s.used {
		_, _ = s.set.backend.Do(ctx, key, []string{"DEL", key}) // else its life ends it
	}
}
