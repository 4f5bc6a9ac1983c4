package rueidisbackend

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/replsettest"
)

// The contract must hold whatever options the user gave his client: they choose
// other protocols, other connections and other code in rueidis.
func TestContract(t *testing.T) {
	for name, change := range map[string]func(*rueidis.ClientOption){
		"defaults":         func(*rueidis.ClientOption) {},
		"RESP2":            func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true },
		"no pipelining":    func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
		"always pipelined": func(o *rueidis.ClientOption) { o.AlwaysPipelining = true },
		"four connections": func(o *rueidis.ClientOption) { o.PipelineMultiplex = 2 },
		"small pipelines":  func(o *rueidis.ClientOption) { o.BlockingPipeline = 4 },
		"reads to replicas": func(o *rueidis.ClientOption) {
			o.SendToReplicas = func(rueidis.Completed) bool { return true }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := connect(t, sharedCluster(t), change)
			replsettest.Run(t, func(*testing.T) replset.Backend { return b })
		})
	}
}
