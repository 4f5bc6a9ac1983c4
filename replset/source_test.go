package replset

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/replset/memory"
)

// sources runs the script that leaves a source, which an in-memory cluster does not.
type sources struct {
	Backend
	left []string
	lose error // in place of the script's reply
}

func (b *sources) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if !strings.HasPrefix(cmd[0], "EVAL") {
		return b.Backend.Do(ctx, key, cmd)
	}
	b.left = append(b.left, key)
	if _, err := b.Backend.Do(ctx, key, []string{"SADD", key, "a"}); err != nil || b.lose != nil {
		return nil, errors.Join(err, b.lose)
	}
	return "members", nil
}

// A source is deleted also where nobody was told that it is there, and where it was replaced by another.
func TestSourceLeavesNoKey(t *testing.T) {
	b := &sources{Backend: memory.New()}
	s := source{set: newSet(t, b, nil), members: []string{"a"}, how: "auto"}
	if err := s.ready(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.lost()
	b.lose = context.Canceled
	if err := s.ready(t.Context(), 2); !errors.Is(err, b.lose) {
		t.Fatalf("got %v, want %v", err, b.lose)
	}
	s.end(t.Context())
	if len(b.left) != 2 {
		t.Fatalf("saw the sources %q, want 2", b.left)
	}
	for _, key := range b.left {
		if do(t, b, "EXISTS", key) != int64(0) {
			t.Errorf("%q is left", key)
		}
	}
}
