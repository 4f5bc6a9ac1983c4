package rueidisbackend

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// build builds one command. rueidis gets a copy of the slice, and may hold that
// for as long as the command is in flight. No argument is given as a key: rueidis
// panics over keys of two slots, where the server says CROSSSLOT.
func build(builder rueidis.Builder, cmd []string) rueidis.Completed {
	c := builder.Arbitrary(cmd...)
	if blocking(cmd) {
		return c.Blocking()
	}
	return c.Build()
}

func (b *Backend) command(cmd []string) rueidis.Completed { return build(b.builder, cmd) }

// bare is command for what never waits.
func (b *Backend) bare(cmd ...string) rueidis.Completed {
	return b.builder.Arbitrary(cmd...).Build()
}

// refuse tells why a command cannot be sent on a connection that all callers
// share. One with no answer, or with several, would shift all later replies to
// other callers, or make rueidis panic in a goroutine of its own, which nobody
// can recover.
func refuse(cmd []string) error {
	if len(cmd) == 0 || cmd[0] == "" {
		return errors.New("rueidisbackend: the command is empty")
	}
	name := strings.ToUpper(cmd[0])
	switch {
	case strings.HasSuffix(name, "SUBSCRIBE"):
	case len(cmd) > 1 && (name == "CLIENT" || name == "SCRIPT"):
		name += " " + strings.ToUpper(cmd[1])
		switch name {
		case "CLIENT REPLY", "SCRIPT DEBUG", "CLIENT TRACKING", "CLIENT CACHING":
		default:
			return nil
		}
	default:
		switch name {
		case "MONITOR", "SYNC", "PSYNC", "REPLCONF", // not one answer
			"MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH", "ASKING", // what comes next would be someone else's
			"READONLY", "READWRITE", "HELLO", "AUTH", "RESET", "QUIT": // all callers' connection would change
		default:
			return nil
		}
	}
	return fmt.Errorf("rueidisbackend: %s is for a connection of one's own, and this one is shared: use Tx for a transaction, and the client's Dedicate or Receive for the rest", name)
}

// blocking reports whether the command may wait on the server. It gets a
// connection of its own then, or it would hold up all other callers'. WAIT is
// none of them: it is about the connection's own writes.
func blocking(cmd []string) bool {
	switch strings.ToUpper(cmd[0]) {
	case "BLPOP", "BRPOP", "BRPOPLPUSH", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP":
		return true
	case "XREAD", "XREADGROUP":
		for _, arg := range cmd[1:] {
			if strings.EqualFold(arg, "BLOCK") {
				return true
			}
			if strings.EqualFold(arg, "STREAMS") {
				break // keys, which may have any name
			}
		}
	}
	return false
}
