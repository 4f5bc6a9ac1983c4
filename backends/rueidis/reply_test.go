package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/harness"
)

// The same command gives what a connection that speaks RESP2 gives, to the last
// digit, whatever rueidis speaks and by every method.
func TestReplyIsThatOfRESP2(t *testing.T) {
	const key, other, none = "{shape}a", "{shape}b", "{shape}none"
	c := sharedCluster(t)
	backends := map[string]*Backend{
		"RESP3": connect(t, c),
		"RESP2": connect(t, c, func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true }),
	}
	resp3 := func(body string) []string { return []string{"EVAL", "redis.setresp(3) " + body, "0"} }
	for _, test := range []struct {
		name    string
		prepare [][]string
		cmd     []string
	}{
		{"nil", nil, []string{"GET", none}},
		{"number in a string", [][]string{{"SET", key, "12"}}, []string{"GET", key}},
		{"empty string", [][]string{{"SET", key, ""}}, []string{"GET", key}},
		{"bytes", [][]string{{"SET", key, "\x00\r\n\xff"}}, []string{"GET", key}},
		{"list with nil", [][]string{{"SET", key, "1"}}, []string{"MGET", key, none}},
		{"set", [][]string{{"SADD", key, "a", "b", "c"}}, []string{"SMEMBERS", key}},
		{"empty set", nil, []string{"SMEMBERS", none}},
		{"set of numbers", [][]string{{"SADD", key, "3", "1", "2"}}, []string{"SINTER", key, key}},
		{"SMISMEMBER", [][]string{{"SADD", key, "a"}}, []string{"SMISMEMBER", key, "a", "b"}},
		{"SPOP", [][]string{{"SADD", key, "a"}}, []string{"SPOP", key, "2"}},
		{"HGETALL", [][]string{{"HSET", key, "f2", "v2", "f1", "v1", "f3", ""}}, []string{"HGETALL", key}},
		{"HGETALL in lower case", [][]string{{"HSET", key, "f", "v"}}, []string{"hgetall", key}},
		{"HGETALL of none", nil, []string{"HGETALL", none}},
		{"HRANDFIELD", [][]string{{"HSET", key, "f", "v"}}, []string{"HRANDFIELD", key, "3"}},
		{"HRANDFIELD WITHVALUES", [][]string{{"HSET", key, "f", "v"}}, []string{"HRANDFIELD", key, "-2", "WITHVALUES"}},
		{"HSCAN", [][]string{{"HSET", key, "f", "v"}}, []string{"HSCAN", key, "0"}},
		{"ZSCORE", [][]string{{"ZADD", key, "0.1", "m"}}, []string{"ZSCORE", key, "m"}},
		{"ZSCORE of none", nil, []string{"ZSCORE", none, "m"}},
		{"ZSCORE whole", [][]string{{"ZADD", key, "3", "m"}}, []string{"ZSCORE", key, "m"}},
		{"ZSCORE large", [][]string{{"ZADD", key, "1700000000123456789", "m"}}, []string{"ZSCORE", key, "m"}},
		{"ZSCORE huge", [][]string{{"ZADD", key, "1.7e308", "m"}}, []string{"ZSCORE", key, "m"}},
		{"ZSCORE tiny", [][]string{{"ZADD", key, "-5e-324", "m"}}, []string{"ZSCORE", key, "m"}},
		{"ZSCORE infinite", [][]string{{"ZADD", key, "-inf", "m"}}, []string{"ZSCORE", key, "m"}},
		{"ZMSCORE", [][]string{{"ZADD", key, "1.5", "m"}}, []string{"ZMSCORE", key, "m", "n"}},
		{"ZINCRBY", [][]string{{"ZADD", key, "0.1", "m"}}, []string{"ZINCRBY", key, "0.2", "m"}},
		{"ZADD INCR", nil, []string{"ZADD", key, "INCR", "0.7", "m"}},
		{"ZRANGE", [][]string{{"ZADD", key, "1", "a", "2", "b"}}, []string{"ZRANGE", key, "0", "-1"}},
		{"ZRANGE WITHSCORES", [][]string{{"ZADD", key, "1", "a", "2.5", "b"}}, []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}},
		{"ZRANGE WITHSCORES of none", nil, []string{"ZRANGE", none, "0", "-1", "WITHSCORES"}},
		{"zrange withscores", [][]string{{"ZADD", key, "1", "a"}}, []string{"zrange", key, "0", "-1", "withscores"}},
		{"ZREVRANGE", [][]string{{"ZADD", key, "1", "a", "2.5", "b"}}, []string{"ZREVRANGE", key, "0", "-1", "WITHSCORES"}},
		{"ZRANGEBYSCORE", [][]string{{"ZADD", key, "1", "a", "2.5", "b"}}, []string{"ZRANGEBYSCORE", key, "-inf", "inf", "WITHSCORES"}},
		{"ZREVRANGEBYSCORE", [][]string{{"ZADD", key, "1", "a", "2.5", "b"}}, []string{"ZREVRANGEBYSCORE", key, "inf", "-inf", "WITHSCORES"}},
		{"ZINTER", [][]string{{"ZADD", key, "1", "a"}, {"ZADD", other, "2", "a"}}, []string{"ZINTER", "2", key, other, "WITHSCORES"}},
		{"ZUNION", [][]string{{"ZADD", key, "1", "a"}, {"ZADD", other, "2", "b"}}, []string{"ZUNION", "2", key, other, "WITHSCORES"}},
		{"ZDIFF", [][]string{{"ZADD", key, "1", "a"}}, []string{"ZDIFF", "2", key, other, "WITHSCORES"}},
		{"ZPOPMIN", [][]string{{"ZADD", key, "1", "a", "2.5", "b"}}, []string{"ZPOPMIN", key}},
		{"ZPOPMAX with count", [][]string{{"ZADD", key, "1", "a", "2.5", "b"}}, []string{"ZPOPMAX", key, "2"}},
		{"ZMPOP", [][]string{{"ZADD", key, "1", "a", "2.5", "b"}}, []string{"ZMPOP", "1", key, "MIN", "COUNT", "2"}},
		{"BZPOPMIN", [][]string{{"ZADD", key, "1.5", "a"}}, []string{"BZPOPMIN", key, "1"}},
		{"ZRANDMEMBER", [][]string{{"ZADD", key, "1.5", "a"}}, []string{"ZRANDMEMBER", key, "-2", "WITHSCORES"}},
		{"ZSCAN", [][]string{{"ZADD", key, "1.5", "a"}}, []string{"ZSCAN", key, "0"}},
		{"GEOPOS", [][]string{{"GEOADD", key, "13.361389", "38.115556", "p"}}, []string{"GEOPOS", key, "p", "q"}},
		{"GEODIST", [][]string{{"GEOADD", key, "13.361389", "38.115556", "p", "15.087269", "37.502669", "q"}}, []string{"GEODIST", key, "p", "q"}},
		{"GEOSEARCH", [][]string{{"GEOADD", key, "13.361389", "38.115556", "p"}}, []string{"GEOSEARCH", key, "FROMMEMBER", "p", "BYRADIUS", "1", "km", "WITHDIST", "WITHCOORD", "WITHHASH"}},
		{"INCRBYFLOAT", [][]string{{"SET", key, "0.1"}}, []string{"INCRBYFLOAT", key, "0.2"}},
		{"LMPOP", [][]string{{"RPUSH", key, "a", "b"}}, []string{"LMPOP", "1", key, "LEFT", "COUNT", "2"}},
		{"LPOS", [][]string{{"RPUSH", key, "a"}}, []string{"LPOS", key, "b"}},
		{"LCS IDX", [][]string{{"SET", key, "abcd"}, {"SET", other, "xbcy"}}, []string{"LCS", key, other, "IDX"}},
		{"XRANGE", [][]string{{"XADD", key, "1-1", "f", "v"}}, []string{"XRANGE", key, "-", "+"}},
		{"XREAD", [][]string{{"XADD", key, "1-1", "f", "v"}, {"XADD", other, "2-2", "g", "w"}}, []string{"XREAD", "STREAMS", key, other, "0", "0"}},
		{"XREAD BLOCK", [][]string{{"XADD", key, "1-1", "f", "v"}}, []string{"XREAD", "BLOCK", "1000", "STREAMS", key, "0"}},
		{"XREAD of none", nil, []string{"XREAD", "STREAMS", none, "0"}},
		{"XREADGROUP", [][]string{{"XADD", key, "1-1", "f", "v"}, {"XGROUP", "CREATE", key, "g", "0"}}, []string{"XREADGROUP", "GROUP", "g", "c", "STREAMS", key, ">"}},
		{"XINFO STREAM", [][]string{{"XADD", key, "1-1", "f", "v"}}, []string{"XINFO", "STREAM", key}},
		{"CONFIG GET", nil, []string{"CONFIG", "GET", "maxmemory-*"}},
		{"COMMAND INFO", nil, []string{"COMMAND", "INFO", "GET", "NOSUCH"}},
		{"CLUSTER SLOTS", nil, []string{"CLUSTER", "SLOTS"}},
		{"verbatim", nil, []string{"CLUSTER", "HELP"}},
		{"verbatim text", nil, []string{"MEMORY", "DOCTOR"}},
		{"OBJECT ENCODING", [][]string{{"SADD", key, "1"}}, []string{"OBJECT", "ENCODING", key}},
		{"script list", nil, []string{"EVAL", "return {1, 'a', false, {-2, '', false, {}}, redis.status_reply('OK'), redis.error_reply('MY error')}", "0"}},
		{"script true", nil, []string{"EVAL", "return true", "0"}},
		{"script map", nil, resp3("return {map={a=1}}")},
		{"script map by number", nil, resp3("return {map={[7]={map={x='y'}}}}")},
		{"script set", nil, resp3("return {set={a=true}}")},
		{"script double", nil, resp3("return {double=0.1}")},
		{"script infinity", nil, resp3("return {double=1/0}")},
		{"script big number", nil, resp3("return {big_number='12345678901234567890123'}")},
		{"script verbatim", nil, resp3("return {verbatim_string={string='a:b:c', format='txt'}}")},
		{"script booleans", nil, resp3("return {true, false}")},
		{"script call", [][]string{{"ZADD", key, "0.1", "m"}}, []string{"EVAL", "redis.setresp(3) return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')", "1", key}},
		{"WRONGTYPE", [][]string{{"SET", key, "v"}}, []string{"SADD", key, "m"}},
		{"ERR", [][]string{{"SET", key, "v"}}, []string{"INCR", key}},
		{"script error", nil, []string{"EVAL", "return redis.error_reply('MINE goes wrong')", "0"}},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			for protocol, b := range backends {
				node, _ := masters(t, c, b.slotOf(key))
				prepare := func() {
					tell(t, node, "DEL", key, other)
					for _, cmd := range test.prepare {
						tell(t, node, cmd...)
					}
				}
				prepare()
				want, err := node.Do(t.Context(), test.cmd...)
				var refused harness.ReplyError
				if err != nil && !errors.As(err, &refused) {
					t.Fatal(err)
				}
				for _, w := range ways {
					prepare()
					got, err := w.run(t.Context(), b, key, test.cmd...)
					if refused != "" {
						if err == nil || err.Error() != string(refused) {
							t.Errorf("%s, %s: got %v and the error %q, want %q", protocol, w.name, got, err, refused)
						}
						continue
					}
					if err != nil || !reflect.DeepEqual(texts(got), texts(want)) {
						t.Errorf("%s, %s: %q:\n got %#v, %v\nwant %#v", protocol, w.name, test.cmd, got, err, want)
					}
				}
			}
		})
	}
}

// texts turns errors, whose types differ, into comparable ones.
func texts(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = texts(v[i])
		}
		return out
	case error:
		return errors.New(v.Error()).Error() + " (error)"
	}
	return v
}

// An error is the server's text, with rueidis's own error underneath, at every
// depth.
func TestServerErrorKeepsRueidisError(t *testing.T) {
	b := connect(t, sharedCluster(t))
	const key = "errors"
	ctx := t.Context()
	if _, err := b.Do(ctx, key, []string{"SET", key, "v"}); err != nil {
		t.Fatal(err)
	}
	check := func(how string, err error, text string) {
		t.Helper()
		var theirs *rueidis.RedisError
		if err == nil || !strings.HasPrefix(err.Error(), text) || !errors.As(err, &theirs) {
			t.Errorf("%s: got %#v, want an error that begins with %q over a *rueidis.RedisError", how, err, text)
		}
	}
	for _, w := range ways {
		_, err := w.run(ctx, b, key, "SADD", key, "m")
		check(w.name, err, "WRONGTYPE ")
		_, err = w.run(ctx, b, key, "NOSUCH", key)
		check(w.name, err, "ERR unknown command")
	}
	list, err := b.Tx(ctx, key, [][]string{{"GET", key}, {"INCR", key}, {"EVAL", "return {redis.error_reply('DEEP error')}", "0"}})
	if err != nil || len(list) != 3 || list[0] != "v" {
		t.Fatalf("Tx: got %v, %v", list, err)
	}
	element, _ := list[1].(error)
	check("element of Tx", element, "ERR value is not an integer")
	deep, _ := list[2].([]any)
	if len(deep) != 1 {
		t.Fatalf("Tx: element 2 is %#v", list[2])
	}
	element, _ = deep[0].(error)
	check("element of an element", element, "DEEP error")
	if _, err = b.Tx(ctx, key, [][]string{{"GET", key}, {"NOSUCH"}}); err == nil || strings.HasPrefix(err.Error(), "EXECABORT") {
		t.Errorf("Tx with an unknown command: got %v, want what was wrong with it", err)
	}
}

// The order of a map's pairs is the server's: the way to it goes through
// rueidis's cache format, and this test tells if a later version changes that.
func TestFlatKeepsOrder(t *testing.T) {
	b := connect(t, sharedCluster(t))
	const key = "order"
	hset := []string{"HSET", key}
	var want []any
	for i := range 50 {
		f, v := fmt.Sprint("field", 50-i), fmt.Sprint(i)
		hset, want = append(hset, f, v), append(want, f, v)
	}
	list, err := b.Tx(context.Background(), key, [][]string{{"DEL", key}, hset, {"HGETALL", key}})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := list[2].([]any); !slices.Equal(got, want) {
		t.Errorf("HGETALL: got %v, want %v", list[2], want)
	}
}
