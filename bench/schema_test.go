package bench

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// report.schema.json is made of the Go types and their comments, so it cannot say anything else.
func TestSchemaIsUpToDate(t *testing.T) {
	s := schema{docs: comments(t), defs: map[string]any{}}
	s.of(reflect.TypeFor[Report]())
	b, err := json.MarshalIndent(map[string]any{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "Latency report",
		"description": "What package bench of shardkit writes. Names that end in _ns are nanoseconds. Readers must expect new fields; the number in schema goes up when one changes its meaning or goes away.",
		"$ref":        "#/$defs/Report",
		"$defs":       s.defs,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	const file = "report.schema.json"
	if *update {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || string(have) != string(b) {
		t.Errorf("%s is not what the types say (%v): run go test -update", file, err)
	}
}

type schema struct {
	docs map[string]string // by "Type" and "Type.Field"
	defs map[string]any
}

func (s schema) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return s.of(t.Elem())
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case t.Kind() == reflect.Struct:
		s.object(t)
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case t.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case t.Kind() == reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "integer"}
}

func (s schema) object(t reflect.Type) {
	if _, known := s.defs[t.Name()]; known {
		return
	}
	properties, required := map[string]any{}, []string{}
	object := map[string]any{"type": "object", "properties": properties}
	s.defs[t.Name()] = object
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		p := s.of(f.Type)
		if doc := s.docs[t.Name()+"."+f.Name]; doc != "" {
			p["description"] = doc
		}
		properties[name] = p
		if option != "omitempty" {
			required = append(required, name)
		}
	}
	object["required"] = required
	if doc := s.docs[t.Name()]; doc != "" {
		object["description"] = doc
	}
}

// comments are those of the types of this package, and of their fields.
func comments(t *testing.T) map[string]string {
	docs := map[string]string{}
	text := func(groups ...*ast.CommentGroup) string {
		var all []string
		for _, g := range groups {
			if words := strings.Fields(g.Text()); len(words) > 0 {
				all = append(all, strings.Join(words, " "))
			}
		}
		return strings.Join(all, " ")
	}
	for _, file := range []string{"report.go", "result.go", "compare.go", "failures.go", "machine.go", "options.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			decl, ok := n.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				return true
			}
			for _, spec := range decl.Specs {
				spec := spec.(*ast.TypeSpec)
				docs[spec.Name.Name] = text(decl.Doc, spec.Doc)
				fields, ok := spec.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						docs[spec.Name.Name+"."+name.Name] = text(field.Doc, field.Comment)
					}
				}
			}
			return true
		})
	}
	return docs
}
