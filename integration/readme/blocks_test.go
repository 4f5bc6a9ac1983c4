//lint:file-ignore SA4006 the README leaves out some checks of errors

package readme

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/tiercache"
)

// The bodies of these functions hold the README's code, to the letter.

func replicatedSet(ctx context.Context, nodes []string) (found string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("replicated set: %w", err)
		}
	}()
	run := func() error {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes})
		defer client.Close()

		active, err := replset.New(goredis.New(client), "active", nil)
		if err != nil {
			return err
		}
		// Once, from whoever knows the set: 16384 replicas, each replaced in one step.
		if err := active.Publish(ctx, []string{"bob", "erin", "zoe"}); err != nil {
			return err
		}
		// Anywhere, with the sharded key you already hold.
		both, err := active.Intersect(ctx, "subs:{42}") // SINTER subs:{42} active:{42}
		n, err := active.Count(ctx, "subs:{42}", 0)     // SINTERCARD 2 subs:{42} active:{42}
		others, err := active.Without(ctx, "subs:{42}") // SDIFF subs:{42} active:{42}
		n, err = active.IntersectInto(ctx, "out:{42}", "subs:{42}")

		found = fmt.Sprint(both, n, others)
		return err
	}
	return found, run()
}

type User struct{ Name string }

type database struct {
	users map[string]User
	reads int
}

func (db *database) User(_ context.Context, id string) (User, error) {
	db.reads++
	u, ok := db.users[id]
	if !ok {
		return u, tiercache.ErrNotFound
	}
	return u, nil
}

func (db *database) Rename(_ context.Context, id, name string) error {
	db.users[id] = User{name}
	return nil
}

func cache(ctx context.Context, addrs map[string]string, db *database) (string, error) {
	var said strings.Builder
	run := func() error {
		shards := map[string]tiercache.Shard{}
		for name, addr := range addrs { // "cache-1": "127.0.0.1:6379", ...
			client := redis.NewClient(&redis.Options{Addr: addr})
			defer client.Close()
			shards[name] = goredis.NewShard(client)
		}
		users, err := tiercache.New[User](shards, nil)
		if err != nil {
			return err
		}
		defer users.Close()

		// From this process's memory, else from the shard, else from the database: once, for all who wait.
		u, err := users.GetOrLoad(ctx, "42", func(ctx context.Context) (User, error) {
			return db.User(ctx, "42")
		})
		if err != nil {
			return err
		}
		if err := db.Rename(ctx, "42", "Ada"); err != nil {
			return err
		}
		err = users.Delete(ctx, "42") // every process reads it anew

		said.WriteString(u.Name)
		return err
	}
	err := run()
	return said.String(), err
}
