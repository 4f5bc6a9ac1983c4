package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// A node that does not yet hear from its replicas is asked again, for the slots alone
// that it refused; any other refusal is final.
func TestSetSlotsAsksAgain(t *testing.T) {
	const late, wrong = "-NOREPLICAS Not enough good replicas to write.", "-ERR I'm already the owner of hash slot 3"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{} // by slot; the one goroutine's until done is closed
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				if lines.Text() != "SETSLOT" {
					continue
				}
				lines.Scan() // the slot's length
				lines.Scan()
				slot, reply := lines.Text(), "+OK"
				switch asked[slot]++; {
				case slot == "2" && asked[slot] < 4:
					reply = late
				case slot == "3":
					reply = wrong
				}
				fmt.Fprint(conn, reply, "\r\n")
			}
			conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := &Node{name: "node-1", direct: l.Addr().String()}
	if err := n.setSlots(ctx, []int{1, 2}, "STABLE"); err != nil {
		t.Error(err)
	}
	err = n.setSlots(ctx, []int{3}, "STABLE")
	if refused := ReplyError(""); !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "ERR I'm") {
		t.Errorf("another refusal: got %v, want it", err)
	}
	l.Close()
	<-done
	if got := []int{asked["1"], asked["2"], asked["3"]}; !slices.Equal(got, []int{1, 4, 1}) {
		t.Errorf("the slots 1 to 3 were sent %v times, want 1, 4 and 1", got)
	}
}
