package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// A shardServer is the one server of profile tiercache.
type shardServer struct {
	tried   bool            // it was looked for
	noneYet error           // and could not be had, for this reason
	group   *harness.Shards // nil with a server that is somebody else's
	own     bool            // the group is the suite's to close

	prefixes []string // keys that begin with one of them may have been written
}

// openShard sees to it that there is a server; once.
func (s *suite) openShard(ctx context.Context) error {
	if s.shard.tried {
		return s.shard.noneYet
	}
	s.shard.tried = true
	s.shard.noneYet = s.startShard(ctx)
	return s.shard.noneYet
}

func (s *suite) startShard(ctx context.Context) (err error) {
	switch {
	case s.Serverless:
		s.servers.Provider = "in process"
		return nil
	case len(s.Addrs) > 0:
		return s.meetShard(ctx)
	case s.Target.Shards != nil:
		s.shard.group = s.Target.Shards
	default:
		s.Log("starting a server")
		o := s.Target.Servers
		o.Shards, o.Replicas = 1, 0
		if s.shard.group, err = harness.StartShards(ctx, o); err != nil {
			return err
		}
		s.shard.own = true
	}
	v := s.shard.group.Version()
	s.servers.Name, s.servers.Version, s.servers.Provider, s.servers.Shards = v.Name, v.Number, s.shard.group.Provider(), 1
	return nil
}

// meetShard looks at somebody else's server through the shard under test.
func (s *suite) meetShard(ctx context.Context) error {
	s.servers.Provider, s.servers.Shards = "address: "+s.Addrs[0], 1
	ctx, cancel := context.WithTimeout(ctx, s.scale(10*time.Second))
	defer cancel()
	shard, closed, err := s.connectShard(ctx, s.scale(3*time.Second))
	if err != nil {
		return err
	}
	defer closed()
	if _, err := shard.Do(ctx, []string{"PING"}); err != nil {
		return fmt.Errorf("conformance: PING at %s: %w", s.Addrs[0], err)
	}
	info, _ := shard.Do(ctx, []string{"INFO", "server"})
	text, _ := info.(string)
	s.servers.Name, s.servers.Version = versionOf(text)
	return nil
}

// connectShard opens the shard under test.
func (s *suite) connectShard(ctx context.Context, patience time.Duration) (tiercache.Shard, func(), error) {
	c := Connection{Addrs: s.Addrs, Password: s.Target.Servers.Password, Patience: patience}
	if s.shard.group != nil {
		c.Addrs, c.TLS = s.shard.group.Addrs()[:1], s.shard.group.TLS()
	}
	shard, closed, err := s.Target.Shard(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	if shard == nil {
		return nil, nil, errors.New("conformance: Target.Shard returned neither a shard nor an error")
	}
	if closed == nil {
		closed = func() {}
	}
	if len(s.shard.prefixes) == 0 {
		s.shard.prefixes = []string{s.Prefix}
	}
	return shard, closed, nil
}

func (s *suite) shardState() string {
	if s.shard.group == nil {
		return s.servers.Provider
	}
	return s.stateOf(s.shard.group.Group)
}

// mendShard brings the server back after a case that broke it, or gives it up.
func (s *suite) mendShard(r *Result, hung bool) {
	if s.shard.group == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.scale(30*time.Second))
	defer cancel()
	err := errors.New("the case hangs, and may go on to break it")
	if !hung {
		err = revive(ctx, s.shard.group.Group)
	}
	switch {
	case err == nil:
	case s.shard.own:
		s.Log("the server after %s: %v", r.ID, err)
		_ = s.shard.group.Close()
		s.shard = shardServer{}
	default:
		s.shard.noneYet = fmt.Errorf("conformance: the server is not well since %s: %w", r.ID, err)
	}
}

// closeShard deletes the run's keys from a server that stays, and ends one that does not.
func (s *suite) closeShard() error {
	if s.shard.own {
		return s.shard.group.Close()
	}
	if len(s.shard.prefixes) == 0 || s.Serverless {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.scale(2*time.Minute))
	defer cancel()
	shard, closed, err := s.connectShard(ctx, s.scale(3*time.Second))
	if err == nil {
		defer closed()
		// Again until there is none: an attempt of a call that was given up may land late.
		for found := 1; found > 0 && err == nil; {
			found, err = deleteKeys(ctx, shard, s.shard.prefixes)
		}
	}
	if err != nil {
		return fmt.Errorf("conformance: keys that begin with one of %q may be left: %w", s.shard.prefixes, err)
	}
	return nil
}

// deleteKeys deletes the keys that begin with one of the prefixes.
func deleteKeys(ctx context.Context, shard tiercache.Shard, prefixes []string) (found int, err error) {
	for cursor := "0"; ; {
		v, err := shard.Do(ctx, []string{"SCAN", cursor, "COUNT", "1000"})
		if err != nil {
			return found, fmt.Errorf("conformance: SCAN: %w", err)
		}
		page, _ := v.([]any)
		if len(page) != 2 {
			return found, fmt.Errorf("conformance: SCAN: the reply is %v", v)
		}
		keys, _ := page[1].([]any)
		del := []string{"DEL"}
		for _, k := range keys {
			name, _ := k.(string)
			for _, p := range prefixes {
				if strings.HasPrefix(name, p) {
					del = append(del, name)
					break
				}
			}
		}
		if len(del) > 1 {
			if _, err := shard.Do(ctx, del); err != nil {
				return found, fmt.Errorf("conformance: DEL: %w", err)
			}
			found += len(del) - 1
		}
		if cursor, _ = page[0].(string); cursor == "0" || cursor == "" {
			return found, nil
		}
	}
}
