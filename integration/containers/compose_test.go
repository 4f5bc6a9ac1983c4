package containers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

const composeDir = "../../examples/compose"

// service has the keys that compose.yml uses: another one there is an error here.
type service struct {
	Build       struct{ Context, Dockerfile string }
	Image       string
	Command     []string
	Environment map[string]string
	Ports       []string
	DependsOn   []string `yaml:"depends_on"`
	Restart     string   // left out here: what a killed test left would come back
}

// TestCompose builds the image of examples/compose and runs the services, as docker compose would. It does not show that golang:1.26
// has what the first stage wants: that stage's go build runs here instead. Nor is protected mode as in the official image, which is
// made without: it is switched off by a flag.
func TestCompose(t *testing.T) {
	t.Parallel()
	if err := exec.CommandContext(t.Context(), "docker", "version").Run(); err != nil {
		harnesstest.Skip(t, fmt.Errorf("%w: docker version: %w", harness.ErrNoServer, err))
	}
	text, err := os.ReadFile(filepath.Join(composeDir, "compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]service }
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		t.Fatal(err)
	}
	proxy := file.Services["proxy"]
	delete(file.Services, "proxy")
	image := file.Services["shard-a"].Image
	if run := cmp.Or(os.Getenv("SHARDKIT_IMAGE"), image); path.Base(run) == image {
		image = run
	} else {
		t.Skipf("compose.yml is about %s, this run about %s", image, run)
	}

	name := fmt.Sprintf("shardkit-compose-%d", os.Getpid())
	built := build(t, name, proxy)
	docker(t, "network", "create", name)
	t.Cleanup(func() { docker(t, "network", "rm", name) })
	for shard, s := range file.Services {
		s.Image, s.Command = image, append(s.Command, "--protected-mode", "no")
		start(t, name, shard, s)
	}
	proxy.Image = built
	start(t, name, "proxy", proxy)

	host, port, _ := strings.Cut(proxy.Ports[0], ":")
	_, port, _ = strings.Cut(port, ":")
	if host != "127.0.0.1" {
		t.Errorf("the proxy's port is published on %s, want this machine alone", host)
	}
	url := "http://" + docker(t, "port", name+"-proxy", port)
	health(t, url, "ok")
	var keys []string
	for i := range 30 {
		keys = append(keys, fmt.Sprintf("%s/cache/key-%d", url, i))
	}
	put(t, keys)

	docker(t, "stop", name+"-shard-a")
	health(t, url, "degraded")
	put(t, keys)
	docker(t, "start", name+"-shard-a")
	health(t, url, "ok")
	put(t, keys)

	status := docker(t, "run", "--rm", "--pid", "container:"+name+"-proxy", "--entrypoint", "cat", image, "/proc/1/status")
	if !strings.Contains(status, "Name:\tshardkit\n") || !strings.Contains(status, "Uid:\t65534\t65534\t65534\t65534\n") {
		t.Errorf("the first process of the proxy's container is\n%s\nwant shardkit, as the user 65534", status)
	}
	docker(t, "stop", name+"-proxy")
	if code := docker(t, "inspect", "--format", "{{.State.ExitCode}}", name+"-proxy"); code != "0" {
		t.Errorf("docker stop ended the proxy with the code %s, want 0", code)
	}
}

// build makes the service's image: the Dockerfile's last stage upon what its first stage is asked to build, built here, and no
// certificates.
func build(t *testing.T, name string, s service) string {
	text, err := os.ReadFile(filepath.Join(composeDir, s.Build.Context, s.Build.Dockerfile))
	if err != nil {
		t.Fatal(err)
	}
	first, last, found := strings.Cut(string(text), "\nFROM scratch\n")
	_, compile, there := strings.Cut(first, "\nRUN ")
	if !found || !there || !strings.Contains(compile, " -o /shardkit ") {
		t.Fatalf("the Dockerfile is\n%s\nwant a stage that makes /shardkit, and one from scratch", text)
	}
	root := t.TempDir()
	made := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(compile, " -o /shardkit ", " -o "+root+"/shardkit "))
	made.Dir = filepath.Join(composeDir, s.Build.Context)
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compile, err, out)
	}
	certificates := filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")
	if err := os.MkdirAll(filepath.Dir(certificates), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		certificates:                      "",
		filepath.Join(root, "Dockerfile"): "FROM scratch\n" + strings.ReplaceAll(last, "COPY --from=build /", "COPY "),
	} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	docker(t, "build", "--tag", name, root)
	t.Cleanup(func() { docker(t, "rmi", "--force", name) })
	t.Logf("the image has %s bytes", docker(t, "image", "inspect", "--format", "{{.Size}}", name))
	return name
}

// start runs a service, reached by its name in the network, and with ports of its own on this machine.
func start(t *testing.T, network, name string, s service) {
	args := []string{"run", "--detach", "--name", network + "-" + name, "--network", network, "--network-alias", name}
	for key, value := range s.Environment {
		args = append(args, "--env", key+"="+os.Expand(value, func(string) string { return "" }))
	}
	for _, p := range s.Ports {
		host, rest, _ := strings.Cut(p, ":")
		_, port, _ := strings.Cut(rest, ":")
		args = append(args, "--publish", host+"::"+port)
	}
	var entrypoint []string
	if err := json.Unmarshal([]byte(docker(t, "image", "inspect", "--format", "{{json .Config.Entrypoint}}", s.Image)), &entrypoint); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(entrypoint, s.Command[:1]) { // the images of tools/servers/images have no shell to look for it
		s.Command = s.Command[1:]
	}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := exec.Command("docker", "logs", "--tail", "5", network+"-"+name).CombinedOutput()
			t.Logf("%s says:\n%s", name, logs)
		}
		docker(t, "rm", "--force", "--volumes", network+"-"+name)
	})
	docker(t, append(append(args, s.Image), s.Command...)...)
}

// docker runs a command, and returns what it printed.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("docker", args...)
	var warnings bytes.Buffer
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, warnings.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// health waits until the proxy says that it is so.
func health(t *testing.T, url, want string) {
	t.Helper()
	wait(t, func() string {
		_, got := ask(t, "GET", url+"/health", "")
		if strings.Contains(got, `"status":"`+want+`"`) {
			return ""
		}
		return fmt.Sprintf("the proxy's health is %s, want the status %s", got, want)
	})
}

// put stores a value under each key, and reads it. Where the machine stalls, a shard may be taken for lost meanwhile.
func put(t *testing.T, keys []string) {
	t.Helper()
	for _, key := range keys {
		wait(t, func() string {
			if code, text := ask(t, "PUT", key, `{"value": "v"}`); code/100 != 2 {
				return fmt.Sprintf("PUT %s: %d %s", key, code, text)
			}
			if code, text := ask(t, "GET", key, ""); code != http.StatusOK || !strings.Contains(text, `"v"`) {
				return fmt.Sprintf("GET %s: %d %s, want v", key, code, text)
			}
			return ""
		})
	}
}

// wait waits for up to 30 s until nothing is wrong.
func wait(t *testing.T, wrong func() string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		over := time.Now().After(deadline)
		what := wrong()
		if what == "" {
			return
		}
		if over {
			t.Fatalf("after 30 s: %s", what)
		}
	}
}

// ask returns 0 where no answer comes.
func ask(t *testing.T, method, url, body string) (int, string) {
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}
