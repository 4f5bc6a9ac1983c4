package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadmeHasTheReportsFigures(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if os.IsNotExist(err) {
		t.Skip("outside of the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := replace(string(text), root)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(text) {
		t.Error("the README's figures are not those of docs/bench/report.json: run make generate")
	}
	if _, err := replace(strings.ReplaceAll(string(text), end, ""), root); err == nil {
		t.Error("a README without markers passes")
	}
}
