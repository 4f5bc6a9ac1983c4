package slotmap

import (
	"errors"
	"strings"
	"testing"
)

func TestValidName(t *testing.T) {
	for _, name := range []string{"active", "a:b", "a b", "\x00\xff", "имя", strings.Repeat("x", 1000)} {
		if err := ValidName(name); err != nil {
			t.Errorf("ValidName(%q): got %v, want nil", name, err)
		}
	}
	for name, want := range map[string]string{
		"":           "is empty",
		"{":          `"{" holds a brace`,
		"}":          `"}" holds a brace`,
		"act{ive":    "holds a brace",
		"active:{7}": `"active:{7}" holds a brace`,
	} {
		err := ValidName(name)
		var e *NameError
		if !errors.As(err, &e) || e.Name != name {
			t.Errorf("ValidName(%q): got %#v, want a *NameError with the name", name, err)
			continue
		}
		if got := err.Error(); !strings.HasPrefix(got, "slotmap: ") || !strings.Contains(got, want) {
			t.Errorf("ValidName(%q): got %q, want %q in it", name, got, want)
		}
	}
}
