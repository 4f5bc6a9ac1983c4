package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
)

const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

func TestLicenceOf(t *testing.T) {
	ours, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	// Two licences of all that are known: to prepare all of them takes seconds.
	scanner, err := licensecheck.NewScanner(slices.DeleteFunc(licensecheck.BuiltinLicenses(), func(l licensecheck.License) bool {
		return l.ID != "Apache-2.0" && l.ID != "MIT"
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, file, text, want, wantErr string }{
		{"ours", "LICENSE", string(ours), "Apache-2.0", ""},
		{"another name", "COPYING.md", string(ours), "Apache-2.0", ""},
		{"none", "README.md", "MIT", "", "no licence file"},
		{"unknown", "LICENSE", "Whoever reads this owes me a beer, in a place of my choice, once a year.", "", "not a licence that is known"},
		{"not allowed", "LICENSE", mit, "", "MIT"},
		{"cut short", "LICENSE", string(ours[:len(ours)/2]) + strings.Repeat("All of this is void where it is read aloud. ", 300), "", "not a licence that is known"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := licenceOf(dir, []string{"Apache-2.0"}, scanner.Scan)
		if got != c.want || (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: got %q, %v, want %q, %q", c.name, got, err, c.want, c.wantErr)
		}
	}
}
