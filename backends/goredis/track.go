package goredis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/push"
)

// Track is Subscribe, and delivers changes of keys, as the server broadcasts them
// (CLIENT TRACKING, BCAST). It needs RESP3, which is go-redis's default.
func (s *Shard) Track(ctx context.Context, channels []string, prefix string, onReady func(ping func(context.Context) error), onMessage func(channel, payload string), onChange func(keys []string)) error {
	track := []any{"CLIENT", "TRACKING", "ON", "BCAST"}
	if prefix != "" {
		track = append(track, "PREFIX", prefix)
	}
	refused := make(chan error, 1)
	err := s.subscribe(ctx, channels, func(o *redis.Options) {
		theirs := o.OnConnect
		o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
			if theirs != nil {
				if err := theirs(ctx, conn); err != nil {
					return err
				}
			}
			err := begin(ctx, conn, track)
			if err != nil {
				refused <- err
			}
			return err
		}
		processor := push.NewProcessor()
		_ = processor.RegisterHandler("invalidate", changes(onChange), true) // it is the first
		o.PushNotificationProcessor = processor
	}, onReady, onMessage)
	select {
	case reason := <-refused:
		return reason
	default:
		return err
	}
}

// begin has the server tell of changes on conn.
func begin(ctx context.Context, conn *redis.Conn, track []any) error {
	hello := conn.Do(ctx, "HELLO")
	_, resp3 := hello.Val().(map[any]any)
	switch {
	case hello.Err() != nil:
		return failure(ctx, hello.Err())
	case !resp3: // the server would take the command, and tell nothing
		return errors.New("goredis: Track: the connection speaks RESP2, in which a server does not tell of changes: leave Protocol out of the client's options")
	}
	err := conn.Do(ctx, track...).Err()
	var server redis.Error
	if err == nil || errors.As(err, &server) {
		return err
	}
	return failure(ctx, err)
}

// changes takes the server's announcements. It runs on the goroutine that reads
// the connection, as messages are delivered.
type changes func(keys []string)

func (c changes) HandlePushNotification(_ context.Context, _ push.NotificationHandlerContext, announced []any) error {
	if len(announced) != 2 {
		return fmt.Errorf("goredis: an announcement of %d words", len(announced))
	}
	if announced[1] == nil {
		c(nil)
		return nil
	}
	list, ok := announced[1].([]any)
	if !ok {
		return fmt.Errorf("goredis: an announcement of %T", announced[1])
	}
	keys := make([]string, 0, len(list))
	for _, key := range list {
		if key, ok := key.(string); ok {
			keys = append(keys, key)
		}
	}
	c(keys)
	return nil
}
