package slotmap

import "strings"

// ValidName reports whether name can be used with [KeyFor]: nil, or a [*NameError] when name is empty or holds a brace.
// Any other bytes are allowed.
//
// An opening brace would come before the tag's own and decide the slot instead of it. A closing brace is harmless to the
// server, which looks for one only after an opening one, but not to people and programs that read the tag back from a key. A key
// without a name says nothing about what it holds.
func ValidName(name string) error {
	if name == "" || strings.ContainsAny(name, "{}") {
		return &NameError{Name: name}
	}
	return nil
}

// NameError says that a name cannot be used with [KeyFor].
type NameError struct {
	Name string // as given
}

func (e *NameError) Error() string {
	if e.Name == "" {
		return `slotmap: the name is empty: give one, the key will be name + ":{tag}"`
	}
	return "slotmap: the name " + quote(e.Name) + ` holds a brace: remove it, since the first "{" of a key decides its slot`
}
