package goredis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A call ends soon after its context, on a connection that stands and on one that
// must be made, whether the client's own time-outs are near or far.
func TestContextEndsOnAFrozenNode(t *testing.T) {
	c := sharedCluster(t)
	const slot = 5001
	const late = 5 * time.Second // on a busy machine; at once, on an idle one
	owner, _ := owners(t, c, slot)
	key := keyIn(t, slot, "k")
	short := func(o *redis.ClusterOptions) {
		o.ReadTimeout, o.WriteTimeout = 400*time.Millisecond, 400*time.Millisecond
	}
	long := func(o *redis.ClusterOptions) { o.ReadTimeout, o.WriteTimeout = time.Minute, time.Minute }
	none := func(o *redis.ClusterOptions) { o.ReadTimeout, o.WriteTimeout = -1, -1 }
	for _, client := range []struct {
		name   string
		change func(*redis.ClusterOptions)
	}{{"short time-outs", short}, {"long time-outs", long}, {"no time-outs", none}} {
		for _, end := range []struct {
			name    string
			context func(context.Context) (context.Context, context.CancelFunc)
			want    error
			within  time.Duration
		}{
			{"near deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 50*time.Millisecond)
			}, context.DeadlineExceeded, late},
			{"cancelled", func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithTimeout(ctx, time.Hour)
				time.AfterFunc(50*time.Millisecond, cancel)
				return ctx, cancel
			}, context.Canceled, late},
		} {
			for _, warm := range []bool{true, false} {
				t.Run(client.name+"/"+end.name+map[bool]string{true: "/connected", false: "/new connection"}[warm], func(t *testing.T) {
					for _, w := range ways {
						b := connect(t, c, client.change)
						frozen(t, c, owner, func() bool {
							other := key
							if !warm { // the slot map alone, from the other nodes
								other = keyIn(t, 16000, "k")
							}
							_, err := w.run(t.Context(), b, other, "GET", other)
							return err == nil
						}, func() {
							ctx, cancel := end.context(t.Context())
							defer cancel()
							start := time.Now()
							_, err := w.run(ctx, b, key, "GET", key)
							if took := time.Since(start); !errors.Is(err, end.want) || took > end.within {
								t.Errorf("%s: got %v after %v, want %v within %v", w.name, err, took, end.want, end.within)
							}
						})
					}
				})
			}
		}
	}
}
