// Code generated from replset/replsettest/compare.go by go generate; DO NOT EDIT.

package tiercachetest

import (
	"fmt"
	"reflect"
	"strings"
)

// same is nil when got is want, down to the types.
func same(got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("got %s, want %s", show(got), show(want))
}

// show writes a reply with its types, which is where backends differ most.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case error:
		return fmt.Sprintf("error %q", v.Error())
	case string:
		if len(v) > 64 {
			return fmt.Sprintf("string of %d bytes %q...", len(v), v[:64])
		}
		return fmt.Sprintf("string %q", v)
	case []any:
		elements := make([]string, 0, 8)
		for i, e := range v {
			if i == 7 {
				elements = append(elements, fmt.Sprintf("... %d in all", len(v)))
				break
			}
			elements = append(elements, show(e))
		}
		return "[]any{" + strings.Join(elements, ", ") + "}"
	}
	return fmt.Sprintf("%T %v", v, v)
}

// short is a command fit for a message.
func short(cmd []string) []string {
	out := make([]string, 0, 8)
	for i, arg := range cmd {
		if i == 7 {
			return append(out, fmt.Sprintf("... %d words", len(cmd)))
		}
		if len(arg) > 64 {
			arg = fmt.Sprintf("%s... %d bytes", arg[:64], len(arg))
		}
		out = append(out, arg)
	}
	return out
}

// code is the first word of a server's error, such as WRONGTYPE, or "" for any
// other error.
func code(err error) string {
	word, _, ok := strings.Cut(err.Error(), " ")
	if !ok || word == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return word
}
