// Command presence keeps the users who are online at hand beside every sharded set of a Redis Cluster.
//
//	presence 127.0.0.1:7000
//
// It reads lines: "join USER" and "leave USER" as connections come and go, and "who KEY", such as "who subs:{42}", which of a set's users are
// online. Joins and leaves are collected and written to all slots four times a second, so it does not matter how many there are.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/replset"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addrs []string, in io.Reader, out io.Writer) (err error) {
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, ClusterStateReloadInterval: time.Second, ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
	})
	defer client.Close()
	online, err := replset.New(goredis.New(client), "online", nil)
	if err != nil {
		return err
	}
	// A deploy starts with nobody. One process of several would leave this to another.
	if err := online.Publish(ctx, nil); err != nil {
		return err
	}
	presence, err := replset.NewCoalescer(online, &replset.CoalescerOptions{
		Tick: 250 * time.Millisecond,
		OnFlush: func(s replset.FlushStats) {
			if s.Err != nil { // the next tick tries again what this one did not reach
				log.Print(s.Err)
			}
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, presence.Close(ctx)) }() // writes what is still collected

	for lines := bufio.NewScanner(in); lines.Scan(); {
		command, name, _ := strings.Cut(lines.Text(), " ")
		switch command {
		case "join":
			err = presence.Add(name)
		case "leave":
			err = presence.Remove(name)
		case "who":
			var users []string
			if users, err = online.Intersect(ctx, name); err == nil {
				slices.Sort(users)
				fmt.Fprintln(out, strings.Join(users, " "))
			}
		default:
			err = fmt.Errorf("presence: %q is none of join, leave, who", command)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
