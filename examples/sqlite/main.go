// Command sqlite puts a cache in front of a SQLite database.
//
//	sqlite users.db 127.0.0.1:6379 127.0.0.1:6380
//
// It reads lines: "get ID" and "rename ID NAME". Several of it on the same shards and the same file see each other's changes.
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

// store is users in a database, behind a cache.
type store struct {
	db    *sql.DB
	names *tiercache.Cache[string]
}

// name reads from the process, else from the user's shard, else from the database: once, for all who wait.
func (s *store) name(ctx context.Context, id string) (string, error) {
	return s.names.GetOrLoad(ctx, "user:"+id, func(ctx context.Context) (name string, err error) {
		err = s.db.QueryRowContext(ctx, `SELECT name FROM users WHERE id = ?`, id).Scan(&name)
		if errors.Is(err, sql.ErrNoRows) {
			err = tiercache.ErrNotFound // remembered as such, for a shorter time
		}
		return name, err
	})
}

// rename writes the database, and then has every process read it anew. A load that began before does not bring back the old name.
func (s *store) rename(ctx context.Context, id, name string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO users (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name`, id, name)
	if err != nil {
		return err
	}
	return s.names.Delete(ctx, "user:"+id) // if this fails, try again: until then others may read the old name
}

func run(ctx context.Context, file string, addrs []string, in io.Reader, out io.Writer) error {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS users (id TEXT PRIMARY KEY, name TEXT NOT NULL)`); err != nil {
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
		case len(words) == 2 && words[0] == "get":
			name, err := s.name(ctx, words[1])
			if errors.Is(err, tiercache.ErrNotFound) {
				name, err = "(none)", nil
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(out, name)
		case len(words) == 3 && words[0] == "rename":
			if err := s.rename(ctx, words[1], words[2]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q is neither get ID nor rename ID NAME", lines.Text())
		}
	}
	return nil
}
