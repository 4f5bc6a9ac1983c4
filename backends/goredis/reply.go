package goredis

import (
	"fmt"
	"strconv"
)

// resp2 gives a reply the shape that RESP2 would have given it, so that users
// of a backend see one shape whatever protocol the client speaks.
func resp2(v any) any {
	switch v := v.(type) {
	case nil, string, int64, error:
		return v
	case []any:
		for i := range v {
			v[i] = resp2(v[i])
		}
		return v
	case map[any]any:
		flat := make([]any, 0, 2*len(v))
		for k, e := range v {
			flat = append(flat, resp2(k), resp2(e))
		}
		return flat
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	}
	return fmt.Sprint(v)
}
