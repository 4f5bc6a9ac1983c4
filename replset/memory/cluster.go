package memory

import (
	"fmt"
	"strings"

	"github.com/shardkit/shardkit/slotmap"
)

// masters is as few as a Redis Cluster has: enough for writers to go to several
// nodes at once, and for a test to see which one a command was sent to.
const masters = 3

// cluster runs CLUSTER SLOTS, and CLUSTER MYID on the master that owns key's
// slot.
func cluster(key string, cmd []string) any {
	switch strings.ToUpper(cmd[1]) {
	case "MYID":
		return nodeID(owner(slotmap.Slot(key)))
	case "SLOTS":
		ranges := make([]any, masters)
		for n := range ranges {
			node := []any{"127.0.0.1", int64(7001 + n), nodeID(n), []any{}}
			ranges[n] = []any{int64(firstSlot(n)), int64(firstSlot(n+1) - 1), node}
		}
		return ranges
	}
	return serverError(fmt.Sprintf("ERR unknown subcommand '%s'", cmd[1]))
}

func firstSlot(node int) int { return node * slotmap.Slots / masters }

func owner(slot uint16) int {
	node := 0
	for node+1 < masters && int(slot) >= firstSlot(node+1) {
		node++
	}
	return node
}

func nodeID(node int) string { return fmt.Sprintf("%040x", node+1) }
