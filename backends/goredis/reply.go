package goredis

import (
	"fmt"
	"math"
	"strconv"
)

// resp2 gives a command's reply the shape that RESP2 would have given it, so
// that users of a backend see one shape whatever protocol the client speaks.
func resp2(v any) any {
	if list, ok := v.([]any); ok && scored(list) {
		flat := make([]any, 0, 2*len(list))
		for _, pair := range list {
			flat = append(flat, pair.([]any)...)
		}
		v = flat
	}
	return value(v)
}

// resp2Each is resp2 for the replies of several commands.
func resp2Each(replies []any) []any {
	for i, v := range replies {
		replies[i] = resp2(v)
	}
	return replies
}

// scored recognises members with their scores, which RESP3 nests and RESP2 does
// not. Only a double makes a pair of them: other commands nest their pairs in
// both protocols.
func scored(list []any) bool {
	for _, e := range list {
		pair, ok := e.([]any)
		if !ok || len(pair) != 2 {
			return false
		}
		if _, ok := pair[1].(float64); !ok {
			return false
		}
	}
	return len(list) > 0
}

func value(v any) any {
	switch v := v.(type) {
	case nil, string, int64, error:
		return v
	case []any:
		for i := range v {
			v[i] = value(v[i])
		}
		return v
	case map[any]any:
		flat := make([]any, 0, 2*len(v))
		for k, e := range v {
			flat = append(flat, value(k), value(e))
		}
		return flat
	case float64:
		return double(v)
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	}
	return fmt.Sprint(v)
}

// double writes a number as servers do, with an exponent only from 1e17 on.
func double(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	case f == 0 || math.Abs(f) >= 1e-4 && math.Abs(f) < 1e17:
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}
