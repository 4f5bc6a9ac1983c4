package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/shardkit/shardkit/conformance"
)

// The reports of our adapters are what the published schema says a report is, and what Validate says; of reports that are spoilt, both say no.
func TestReportsFollowTheSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(conformance.Schema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("report.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	bySchema := func(text []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	files, err := filepath.Glob("../conformance/reports/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("the committed reports: %q, %v", files, err)
	}
	for _, file := range files {
		report, err := conformance.ReadReport(file)
		if err != nil {
			t.Error(err)
		}
		for _, p := range report.Profiles {
			if p.Verdict != conformance.Conformant {
				t.Errorf("%s: profile %s is %s", file, p.Profile, p.Verdict)
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := bySchema(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(r map[string]any, c map[string]any){
		"another format":     func(r, _ map[string]any) { r["format"] = "shardkit-conformance/0" },
		"no seed":            func(r, _ map[string]any) { delete(r, "seed") },
		"a seed of 2^53":     func(r, _ map[string]any) { r["seed"] = 1 << 53 },
		"an unknown field":   func(r, _ map[string]any) { r["mood"] = "good" },
		"no such status":     func(_, c map[string]any) { c["status"] = "passed" },
		"a pass for reasons": func(_, c map[string]any) { c["reason"] = "known" },
		"an unexplained failure": func(_, c map[string]any) {
			c["status"], c["reason"] = "fail", "requirement"
		},
		"a wrong reason": func(_, c map[string]any) { c["status"], c["reason"], c["seen"] = "fail", "feature", "x" },
		"no such level":  func(_, c map[string]any) { c["level"] = "must" },
		"no requirement": func(_, c map[string]any) { c["requirement"] = "" },
	} {
		var r map[string]any
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		spoil(r, r["cases"].([]any)[0].(map[string]any))
		spoilt, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "report.json")
		if err := os.WriteFile(file, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := conformance.ReadReport(file); err == nil {
			t.Errorf("%s: ReadReport takes it", name)
		}
		if bySchema(spoilt) == nil {
			t.Errorf("%s: the schema takes it", name)
		}
	}
}
