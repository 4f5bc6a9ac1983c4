// Command sqlite puts a cache in front of a SQLite database.
//
//	sqlite users.db 127.0.0.1:6379 127.0.0.1:6380
//
// It reads lines: "get TEAM ID", "rename TEAM ID NAME" and "disband TEAM". Several of it on the same shards and the same file see each
// other's changes.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/tiercache"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: sqlite FILE HOST:PORT ...")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2:], os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// store is the users of teams in a database, behind a cache.
type store struct {
	db    *sql.DB
	names *tiercache.Cache[string]
}

// name reads from the process, else from the user's shard, else from the database: once, for all who wait.
func (s *store) name(ctx context.Context, team, id string) (string, error) {
	return s.names.GetOrLoad(ctx, team+"/"+id, func(ctx context.Context) (name string, err error) {
		err = s.db.QueryRowContext(ctx, `SELECT name FROM users WHERE team = ? AND id = ?`, team, id).Scan(&name)
		if errors.Is(err, sql.ErrNoRows) {
			err = tiercache.ErrNotFound // remembered as such, for a shorter time
		}
		return name, err
	}, tiercache.Tags(team))
}

// rename writes the database, and then has every process read it anew. A load that began before does not bring back the old name.
func (s *store) rename(ctx context.Context, team, id, name string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO users (team, id, name) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET name = excluded.name`, team, id, name)
	if err != nil {
		return err
	}
	return s.names.Delete(ctx, team+"/"+id) // if this fails, try again: until then others may read the old name
}

// disband deletes a team's users, and all that the cache holds of them, whatever their ids.
func (s *store) disband(ctx context.Context, team string) error {
	if _, err := s.db.ExecContext(ctx, `DELETE FROM users WHERE team = ?`, team); err != nil {
		return err
	}
	return s.names.InvalidateTag(ctx, team)
}

func run(ctx context.Context, file string, addrs []string, in io.Reader, out io.Writer) error {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS users (team TEXT, id TEXT, name TEXT NOT NULL, PRIMARY KEY (team, id))`); err != nil {
		return err
	}
	shards := map[string]tiercache.Shard{}
	for i, addr := range addrs { // by their place: a shard keeps its keys as long as it keeps its name
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		shards[fmt.Sprint("shard-", i+1)] = goredis.NewShard(client)
	}
	names, err := tiercache.New[string](shards, nil)
	if err != nil {
		return err
	}
	defer names.Close()
	s := &store{db, names}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 3 && words[0] == "get":
			name, err := s.name(ctx, words[1], words[2])
			if errors.Is(err, tiercache.ErrNotFound) {
				name, err = "(none)", nil
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(out, name)
		case len(words) == 4 && words[0] == "rename":
			if err := s.rename(ctx, words[1], words[2], words[3]); err != nil {
				return err
			}
		case len(words) == 2 && words[0] == "disband":
			if err := s.disband(ctx, words[1]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q is none of get TEAM ID, rename TEAM ID NAME, disband TEAM", lines.Text())
		}
	}
	return nil
}
