// Command blocklist serves who may be shown to a user, without those who are blocked. When it cannot know who is blocked it shows nobody.
//
//	blocklist 127.0.0.1:7000
//	curl http://127.0.0.1:8080/visible/42
//
// The blocklist is published by somebody else: shardkit set publish --addr 127.0.0.1:7000 --name blocked mallory.
package main

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/replset"
)

func main() {
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: os.Args[1:], ClusterStateReloadInterval: time.Second, ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
	})
	defer client.Close()
	handler, err := visible(goredis.New(client))
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// visible answers GET /visible/USER with the followers of USER who are not blocked.
func visible(backend replset.Backend) (http.Handler, error) {
	blocked, err := replset.New(backend, "blocked", nil)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /visible/{user}", func(w http.ResponseWriter, r *http.Request) {
		shown, err := blocked.Without(r.Context(), "followers:{"+r.PathValue("user")+"}")
		switch {
		case errors.Is(err, replset.ErrReplicaMissing), errors.Is(err, replset.ErrReplicaDrifted):
			// Not "nobody is blocked": whoever deleted or changed the list has opened nothing.
			log.Print(err)
			http.Error(w, "who is blocked is not known", http.StatusServiceUnavailable)
		case err != nil:
			log.Print(err)
			http.Error(w, "try again", http.StatusServiceUnavailable)
		default:
			slices.Sort(shown)
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(shown)
		}
	})
	return mux, nil
}
