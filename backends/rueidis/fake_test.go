package rueidisbackend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"
)

// fakeCluster is a client of nodes that answer as a test tells them to, for what
// real servers do only by chance.
type fakeCluster struct {
	rueidis.Client // nil: no other method may be called
	addrs          []string

	mu     sync.Mutex
	sent   []sent
	answer func(addr string, cmds []string) []any // by the joined commands
}

// sent is one DoMulti that a node got.
type sent struct {
	addr string
	cmds []string
}

// newFake returns a backend over fake nodes. The first of them owns all slots.
func newFake(t *testing.T, answer func(addr string, cmds []string) []any, addrs ...string) (*Backend, *fakeCluster) {
	t.Helper()
	c := &fakeCluster{addrs: addrs, answer: answer}
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b, c
}

func (c *fakeCluster) Mode() rueidis.ClientMode { return rueidis.ClientModeCluster }
func (c *fakeCluster) B() rueidis.Builder       { return rueidis.Builder{} }

func (c *fakeCluster) Nodes() map[string]rueidis.Client {
	nodes := map[string]rueidis.Client{}
	for _, addr := range c.addrs {
		nodes[addr] = &fakeNode{cluster: c, addr: addr}
	}
	return nodes
}

// sends returns what the nodes got, but for the backend's own questions.
func (c *fakeCluster) sends() []sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]sent(nil), c.sent...)
}

type fakeNode struct {
	rueidis.Client
	cluster *fakeCluster
	addr    string
}

func (n *fakeNode) DoMulti(_ context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	cmds := make([]string, len(multi))
	for i := range multi {
		cmds[i] = strings.Join(multi[i].Commands(), " ")
		if multi[i].IsRetryable() {
			panic("a command that rueidis may repeat: " + cmds[i])
		}
	}
	switch strings.Join(cmds, ",") {
	case "CLUSTER SLOTS":
		host, port, _ := strings.Cut(n.cluster.addrs[0], ":")
		var p int64
		fmt.Sscan(port, &p)
		return []rueidis.RedisResult{result([]any{[]any{int64(0), int64(16383), []any{host, p, "id"}}})}
	case "MULTI,EXEC":
		return []rueidis.RedisResult{result("OK"), result([]any{})}
	case "ASKING,MULTI,EXEC":
		return []rueidis.RedisResult{result("OK"), result("OK"), result([]any{})}
	}
	n.cluster.mu.Lock()
	n.cluster.sent = append(n.cluster.sent, sent{n.addr, cmds})
	n.cluster.mu.Unlock()
	var results []rueidis.RedisResult
	for _, v := range n.cluster.answer(n.addr, cmds) {
		results = append(results, result(v))
	}
	return results
}

// refusal is an error reply of a fake server; any other error is one of the
// connection.
type refusal string

func result(v any) rueidis.RedisResult {
	if err, failed := v.(error); failed {
		return rueidis.NewErrorResult(err)
	}
	var m rueidis.RedisMessage
	if err := m.CacheUnmarshalView(encode(make([]byte, 7), v)); err != nil {
		panic(err)
	}
	return rueidis.NewResult(m, nil)
}

// encode writes rueidis's cache format, the one way to make a message.
func encode(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return binary.BigEndian.AppendUint64(append(b, '_'), 0)
	case int64:
		return binary.BigEndian.AppendUint64(append(b, ':'), uint64(v))
	case string:
		return append(binary.BigEndian.AppendUint64(append(b, '+'), uint64(len(v))), v...)
	case refusal:
		return append(binary.BigEndian.AppendUint64(append(b, '-'), uint64(len(v))), v...)
	case []any:
		b = binary.BigEndian.AppendUint64(append(b, '*'), uint64(len(v)))
		for _, e := range v {
			b = encode(b, e)
		}
		return b
	}
	panic(fmt.Sprintf("cannot encode %T", v))
}

// all answers each command alike.
func all(v any, cmds []string) []any {
	out := make([]any, len(cmds))
	for i := range out {
		out[i] = v
	}
	return out
}

const nodeA, nodeB = "a:1", "b:2"

// Two nodes that name each other must not be asked for ever, as rueidis's
// cluster client does by default.
func TestRedirectsAreBounded(t *testing.T) {
	for _, kind := range []string{"MOVED", "ASK"} {
		for _, w := range ways {
			t.Run(kind+"/"+w.name, func(t *testing.T) {
				b, c := newFake(t, func(addr string, cmds []string) []any {
					to := nodeB
					if addr == nodeB {
						to = nodeA
					}
					return all(refusal(kind+" 866 "+to), cmds)
				}, nodeA, nodeB)
				_, err := w.run(t.Context(), b, "x", "GET", "x")
				if err == nil || !strings.HasPrefix(err.Error(), kind+" 866 ") {
					t.Errorf("got %v, want the redirect", err)
				}
				if n := len(c.sends()); n != 1+maxRedirects {
					t.Errorf("sent %d times, want %d: %v", n, 1+maxRedirects, c.sends())
				}
			})
		}
	}
}

// A slot can change hands between a transaction's commands and its EXEC, which
// then answers MOVED and runs none. rueidis's cluster client would repeat EXEC
// alone on the new master.
func TestMovedAtExecRepeatsTheWhole(t *testing.T) {
	for _, kind := range []string{"MOVED", "ASK"} {
		t.Run(kind, func(t *testing.T) {
			b, c := newFake(t, func(addr string, cmds []string) []any {
				out := all("QUEUED", cmds)
				for i := range cmds {
					switch cmds[i] {
					case "MULTI", "ASKING":
						out[i] = "OK"
					case "EXEC":
						out[i] = refusal(kind + " 866 " + nodeB)
						if addr == nodeB {
							out[i] = []any{int64(1), int64(2)}
						}
					}
				}
				return out
			}, nodeA, nodeB)
			list, err := b.Tx(t.Context(), "x", [][]string{{"DEL", "x"}, {"SADD", "x", "m"}})
			if err != nil || len(list) != 2 || list[0] != int64(1) || list[1] != int64(2) {
				t.Errorf("got %v, %v", list, err)
			}
			const tx = "MULTI,DEL x,SADD x m,EXEC"
			want := []string{nodeA + " " + tx, nodeB + " " + tx}
			if kind == "ASK" {
				want[1] = nodeB + " ASKING," + tx
			}
			var got []string
			for _, s := range c.sends() {
				got = append(got, s.addr+" "+strings.Join(s.cmds, ","))
			}
			if strings.Join(got, ";") != strings.Join(want, ";") {
				t.Errorf("sent %q, want %q", got, want)
			}
		})
	}
}

// Whatever breaks on the way, a command is sent once, and the error says where.
func TestBrokenConnectionIsNotRetried(t *testing.T) {
	broken := errors.New("EOF")
	for _, w := range ways {
		b, c := newFake(t, func(_ string, cmds []string) []any { return all(broken, cmds) }, nodeA)
		_, err := w.run(t.Context(), b, "x", "INCR", "x")
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "rueidisbackend: "+nodeA) {
			t.Errorf("%s: got %v, want rueidisbackend: %s: %v", w.name, err, nodeA, broken)
		}
		if n := len(c.sends()); n != 1 {
			t.Errorf("%s: sent %d times", w.name, n)
		}
	}
}

// A time-out of rueidis's own must not look like the end of the caller's
// context, or the caller would not try again.
func TestRueidisTimeoutIsNotTheContexts(t *testing.T) {
	for _, w := range ways {
		b, _ := newFake(t, func(_ string, cmds []string) []any { return all(context.DeadlineExceeded, cmds) }, nodeA)
		_, err := w.run(t.Context(), b, "x", "GET", "x")
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %#v", w.name, err)
		}
	}
}

func TestPanicBecomesError(t *testing.T) {
	for _, w := range ways {
		for _, ctx := range []context.Context{context.Background(), t.Context()} {
			b, _ := newFake(t, func(string, []string) []any { panic("boom") }, nodeA)
			if _, err := w.run(ctx, b, "x", "GET", "x"); err == nil || !strings.Contains(err.Error(), "rueidis panicked: boom") {
				t.Errorf("%s: got %v", w.name, err)
			}
			b, c := newFake(t, nil)
			c.answer = nil
			b.client = struct{ rueidis.Client }{} // Nodes panics
			if _, err := w.run(ctx, b, "x", "GET", "x"); err == nil || !strings.Contains(err.Error(), "rueidis panicked") {
				t.Errorf("%s, Nodes: got %v", w.name, err)
			}
			b, _ = newFake(t, func(string, []string) []any { return nil }, nodeA)
			if _, err := w.run(ctx, b, "x", "GET", "x"); err == nil || !strings.Contains(err.Error(), "hooks") {
				t.Errorf("%s, results lost: got %v", w.name, err)
			}
		}
	}
}

// A long pipeline goes in pieces, and after one that got no answer the rest is
// not sent.
func TestPipelineGoesInPieces(t *testing.T) {
	const n = 3*pieceSize + 7
	keys, cmds := make([]string, n), make([][]string, n)
	for i := range n {
		keys[i], cmds[i] = "x", []string{"GET", fmt.Sprint(i)}
	}
	last := fmt.Sprint("GET ", 2*pieceSize-1) // of the second piece
	broken := errors.New("EOF")
	for _, breaks := range []bool{false, true} {
		b, c := newFake(t, func(_ string, cmds []string) []any {
			out := make([]any, len(cmds))
			for i, cmd := range cmds {
				out[i] = strings.TrimPrefix(cmd, "GET ")
				if breaks && cmd == last {
					out[i] = broken
				}
			}
			return out
		}, nodeA)
		replies := b.Pipeline(t.Context(), keys, cmds)
		pieces := 4
		if breaks {
			pieces = 2
		}
		if got := len(c.sends()); got != pieces {
			t.Errorf("breaks=%v: sent %d pieces, want %d", breaks, got, pieces)
		}
		for i, v := range replies {
			if breaks && i >= 2*pieceSize-1 {
				if err, _ := v.(error); !errors.Is(err, broken) {
					t.Fatalf("element %d: got %v, want %v", i, v, broken)
				}
			} else if v != fmt.Sprint(i) {
				t.Fatalf("breaks=%v: element %d: got %v", breaks, i, v)
			}
		}
	}
}

func TestRedirectOf(t *testing.T) {
	for _, test := range []struct {
		text string
		want target
	}{
		{"MOVED 42 127.0.0.1:7000", target{addr: "127.0.0.1:7000", slot: 42}},
		{"ASK 16383 10.0.0.1:6379", target{addr: "10.0.0.1:6379", slot: 16383, ask: true}},
		{"MOVED 42 redis-1.example:7000", target{addr: "redis-1.example:7000", slot: 42}},
		{"MOVED 42 ::1:7000", target{addr: "[::1]:7000", slot: 42}},
		{"MOVED 42 [fe80::1]:7000", target{addr: "[fe80::1]:7000", slot: 42}},
		{"MOVED 42 :7000", target{addr: "asked:7000", slot: 42}},
		{"MOVED 42 ?:7000", target{}},
		{"MOVED 16384 a:1", target{}},
		{"MOVED x a:1", target{}},
		{"MOVED", target{}},
		{"MOVED 42", target{}},
		{"MOVED 42 nowhere", target{}},
		{"ASKED 42 a:1", target{}},
		{"TRYAGAIN Multiple keys request", target{}},
		{"", target{}},
	} {
		got, ok := redirectOf(target{addr: "asked:1"}, &serverError{text: test.text})
		if ok != (test.want.addr != "") || ok && got != test.want {
			t.Errorf("%q: got %+v, %v, want %+v", test.text, got, ok, test.want)
		}
	}
	if _, ok := redirectOf(target{}, "MOVED 42 a:1"); ok {
		t.Error("a string reply was taken for a redirect")
	}
}

func TestParseSlots(t *testing.T) {
	master := func(host any, port int64) []any { return []any{host, port, "id", []any{}} }
	a := parseSlots("asked:7000", []any{
		[]any{int64(0), int64(99), master("h1", 1), master("replica", 9)},
		[]any{int64(100), int64(100), master(nil, 7000)},
		[]any{int64(101), int64(200), master("", 7001)},
		[]any{int64(201), int64(300), master("?", 7002)},
		[]any{int64(301), int64(400)},
		[]any{"x", int64(400), master("h", 1)},
		[]any{int64(16383), int64(99999), master("::1", 3)},
		"nonsense",
	})
	if a.known != 202 {
		t.Errorf("knows %d slots, want 202", a.known)
	}
	for slot, want := range map[int]string{0: "h1:1", 99: "h1:1", 100: "asked:7000", 101: "asked:7001", 200: "asked:7001", 201: "", 301: "", 16383: "[::1]:3"} {
		got := ""
		if owner := a.owner[slot].Load(); owner != nil {
			got = *owner
		}
		if got != want {
			t.Errorf("slot %d: got %q, want %q", slot, got, want)
		}
	}
	if a := parseSlots("asked:1", refusal("x")); a.known != 0 || a.err == nil {
		t.Errorf("nonsense: got %d slots, %v", a.known, a.err)
	}
}

func TestParseNodes(t *testing.T) {
	const text = "id1 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460\n" +
		"id2 10.0.0.2:7000@17000,two.example master - 0 0 2 connected\n" +
		"id3 ::1:7000@17000,,tls-port=0,shard-id=x slave id1 0 0 2 connected\n" +
		"id4 127.0.0.1:7004@17004 master,fail? - 0 0 4 connected\n" +
		"id5 :7005@17005 myself,master - 0 0 4 connected\n" +
		"id6 :0@0 master,noaddr - 0 0 4 disconnected\nnonsense\nid7 nowhere master\n"
	for addr, want := range map[string]string{
		"127.0.0.1:7000": "id1", "10.0.0.2:7000": "id2", "two.example:7000": "id2", "[::1]:7000": "id3",
		"127.0.0.1:7004": "", "asked:7005": "id5", "asked:0": "", "127.0.0.1:1": "",
	} {
		if got := parseNodes("asked:1", text, addr); got != want {
			t.Errorf("%s: got %q, want %q", addr, got, want)
		}
	}
}
