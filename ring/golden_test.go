package ring_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/ring/internal/golden"
)

var emulate = flag.Bool("emulate", false, "compare all architectures for which there is an emulator: minutes")

var update = flag.Bool("update", false, "rewrite testdata/golden.txt: every deployed key may move")

const goldenFile = "testdata/golden.txt"

// Where keys are never changes: not with a version, for caches would be cold, and not with the architecture, for processes
// would disagree.
func TestGolden(t *testing.T) {
	every := 1
	if ring.RaceEnabled && !*update { // 386 meets them all
		every = 3
	}
	lines, err := golden.Lines(every)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(goldenFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compareGolden(t, got, every)
}

func TestGoldenOnOtherArchitectures(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the standard library for another architecture")
	}
	if runtime.GOOS != "linux" {
		t.Skipf("runs other architectures on linux alone, not on %s", runtime.GOOS)
	}
	// 386 has 32-bit integers and runs on amd64 itself; s390x is big-endian, mips has no floating point; arm64, ppc64le, s390x and
	// riscv64 fuse multiplication and addition. Those need their emulators (qemu-user-static), and -emulate.
	emulators := map[string]string{
		"386": "i386", "arm64": "aarch64", "ppc64le": "ppc64le", "s390x": "s390x", "riscv64": "riscv64", "mips": "mips",
	}
	for arch, emulator := range emulators {
		var run []string
		if arch != "386" || runtime.GOARCH != "amd64" {
			if !*emulate {
				continue
			}
			path, err := exec.LookPath("qemu-" + emulator + "-static")
			if err != nil {
				t.Errorf("%s: %v", arch, err)
				continue
			}
			run = []string{path}
		}
		t.Run(arch, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "print")
			build := exec.Command("go", "build", "-o", program, "./internal/golden/print")
			build.Env = append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=", "GOMIPS=softfloat")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", build, err, out)
			}
			command := append(run, program)
			out, err := exec.Command(command[0], command[1:]...).Output()
			if err != nil {
				t.Fatalf("%v: %v", command, err)
			}
			compareGolden(t, string(out), 1)
		})
	}
}

func compareGolden(t *testing.T, got string, every int) {
	t.Helper()
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), []string{}
	for i, line := range strings.Split(strings.TrimSuffix(string(want), "\n"), "\n") {
		if i%every == 0 {
			wantLines = append(wantLines, line)
		}
	}
	wantLines = append(wantLines, "")
	for i := range max(len(gotLines), len(wantLines)) {
		if i >= len(gotLines) || i >= len(wantLines) || gotLines[i] != wantLines[i] {
			t.Fatalf("differs from %s, first in line %d:\ngot  %q\nwant %q", goldenFile, i*every+1, gotLines[i:min(i+1, len(gotLines))], wantLines[i:min(i+1, len(wantLines))])
		}
	}
}
