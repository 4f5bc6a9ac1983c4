// Package memory is a tiercache.Shard without a server: for Examples, and for
// tests of code that uses a cache. It keeps strings in the process, delivers
// messages to its subscribers, and has the cache's own scripts in Go.
//
// It is not a Redis: one lock is held for each command, memory is bounded only
// where Options.MaxBytes says so, and it knows only the commands that a cache
// sends and a few that tests want. It runs no Lua.
package memory

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// Options are the choices that New leaves open. The zero value works.
type Options struct {
	// Now is the server's clock, which ends values' lives. nil means time.Now.
	Now func() time.Time

	// MaxBytes bounds what is held: about the bytes of keys and values, and 100 for
	// each. Past it values that have a life are dropped, any of them first. 0 means
	// no bound.
	MaxBytes int64
}

// Shard is the in-memory server. Its methods follow tiercache.Shard.
type Shard struct {
	now func() time.Time

	mu          sync.Mutex
	keys        map[string]value
	saved       map[string]value
	scripts     map[string]bool // the hashes of those that were loaded
	runID       string
	subscribers map[*subscriber]struct{}
	bound       bound
}

type value struct {
	text    string
	expires time.Time // zero: never

	// In the place of text. They are replaced, never changed.
	scores  map[string]int64 // of a sorted set
	list    list
	outages map[string]outage
}

// New returns an empty server. o may be nil.
func New(o *Options) *Shard {
	s := &Shard{now: time.Now, keys: map[string]value{}, subscribers: map[*subscriber]struct{}{}}
	if o != nil {
		s.bound.limit = o.MaxBytes
		if o.Now != nil {
			s.now = o.Now
		}
	}
	s.start()
	return s
}

func (s *Shard) start() {
	var id [20]byte
	rand.Read(id[:]) // never fails
	s.runID = hex.EncodeToString(id[:])
	s.scripts = map[string]bool{}
}

// Save keeps a copy of all values for Restart, in the place of an earlier one.
func (s *Shard) Save() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = maps.Clone(s.keys)
}

// Restart is what a crash of a server is to its clients: it comes back under
// another run id with what Save last kept, or with nothing; it has forgotten the
// scripts, and every Subscribe returns an error.
func (s *Shard) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = maps.Clone(s.saved)
	if s.keys == nil {
		s.keys = map[string]value{}
	}
	for sub := range s.subscribers {
		s.drop(sub, errRestarted)
	}
	s.start()
}

// Do runs one command.
func (s *Shard) Do(ctx context.Context, cmd []string) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: nothing was sent: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.run(cmd)
	s.bound.note(s, cmd)
	if err, failed := v.(error); failed {
		return nil, err
	}
	return v, nil
}

// Pipeline runs the commands in order.
func (s *Shard) Pipeline(ctx context.Context, cmds [][]string) []any {
	replies := make([]any, len(cmds))
	for i, cmd := range cmds {
		v, err := s.Do(ctx, cmd)
		if replies[i] = v; err != nil {
			replies[i] = err
		}
	}
	return replies
}

// Tx runs the commands with no other command between them.
func (s *Shard) Tx(ctx context.Context, cmds [][]string) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: nothing was sent: %w", err)
	}
	for _, cmd := range cmds {
		if _, err := lookUp(cmd); err != nil {
			return nil, fmt.Errorf("EXECABORT Transaction discarded because of previous errors: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	replies := make([]any, len(cmds))
	for i, cmd := range cmds {
		replies[i] = s.run(cmd)
		s.bound.note(s, cmd)
	}
	return replies, nil
}

// serverError is an error in the words of a server.
type serverError string

func (e serverError) Error() string { return string(e) }

const (
	errSyntax    = serverError("ERR syntax error")
	errNotInt    = serverError("ERR value is not an integer or out of range")
	errNoScript  = serverError("NOSCRIPT No matching script. Please use EVAL.")
	errNoLua     = serverError("ERR package memory runs only the scripts of tiercache")
	errLife      = serverError("ERR invalid expire time in 'set' command")
	errSubscript = serverError("ERR unknown subcommand")
)

func lookUp(cmd []string) (command, error) {
	if len(cmd) == 0 {
		return command{}, serverError("ERR empty command")
	}
	c, ok := commands[strings.ToUpper(cmd[0])]
	if !ok {
		return c, serverError(fmt.Sprintf("ERR unknown command '%s'", cmd[0]))
	}
	if len(cmd) < c.least {
		return c, serverError(fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(cmd[0])))
	}
	return c, nil
}

// run executes one command; s.mu is held.
func (s *Shard) run(cmd []string) any {
	c, err := lookUp(cmd)
	if err != nil {
		return err
	}
	return c.run(s, cmd)
}

// get returns the live value at key.
func (s *Shard) get(key string) (value, bool) {
	v, ok := s.keys[key]
	if ok && !v.expires.IsZero() && !s.now().Before(v.expires) {
		delete(s.keys, key)
		s.changed(key)
		return value{}, false
	}
	return v, ok
}
