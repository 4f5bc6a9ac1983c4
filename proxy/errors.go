package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/shardkit/shardkit/tiercache"
)

// failure is an answer that is an error.
type failure struct {
	status  int
	message string
}

func (f *failure) Error() string { return f.message }

func fail(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

// clientLeft is the status of a request whose client did not wait: it is in
// metrics alone.
const clientLeft = 499

// failureOf is the answer to a request that failed.
func failureOf(ctx context.Context, err error) *failure {
	var f *failure
	var tooLarge *http.MaxBytesError
	var shard *tiercache.ShardError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &tooLarge):
		return &failure{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit)}
	case errors.Is(ctx.Err(), context.Canceled):
		return &failure{clientLeft, "the client left"}
	case errors.Is(err, tiercache.ErrNotFound):
		return &failure{http.StatusNotFound, "no such key"}
	case errors.Is(err, tiercache.ErrLease):
		return &failure{http.StatusPreconditionFailed, "the key has moved on since Cache-Fill was given: get it again"}
	case errors.As(err, &shard):
		return &failure{http.StatusServiceUnavailable, fmt.Sprintf("shard %q does not serve: %s", shard.Shard, oneLine(shard.Err))}
	case errors.Is(err, tiercache.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		return &failure{http.StatusServiceUnavailable, oneLine(err)}
	}
	return &failure{http.StatusInternalServerError, oneLine(err)}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// write answers with the failure.
func (f *failure) write(w http.ResponseWriter) {
	if f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, f.status, map[string]string{"error": f.message})
}

// answer writes v as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error": "the answer does not encode"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a client that has left is not told
}

// timedOut reports whether reading a request took too long.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
