package tcredis

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/shardkit/shardkit/harness"
)

// dataDir is where a server keeps its data. In the official images it is a volume.
const dataDir = "/data"

// faultTimeout bounds a call of the daemon that takes some 0.1 s when all is well.
const faultTimeout = 20 * time.Second

// A node is one server in a container.
type node struct {
	l    *launcher
	spec harness.Spec

	mu    sync.Mutex
	id    string // of its container, "" before the first start
	run   *run
	ended bool // Close has come by: nothing starts any more
}

// A run is the life of one process.
type run struct {
	gone chan struct{} // closed when it has ended
	err  error         // how it ended; to be read after gone
}

func (n *node) Start(ctx context.Context, wipe bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.ended:
		return n.errorf("start: closed")
	case n.run != nil && n.run.exited() == nil:
		return n.errorf("start: it runs already: kill it first")
	}
	if n.id == "" {
		if err := n.create(ctx, n.spec.Files); err != nil {
			return err
		}
	} else if wipe {
		if err := n.replace(ctx); err != nil {
			return err
		}
	}
	// The wait lives as long as the group, and is asked for before the start, so that no end is missed.
	waiting, cancel := context.WithCancel(n.l.ctx)
	wait := n.l.docker.ContainerWait(waiting, n.id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	if _, err := n.l.docker.ContainerStart(ctx, n.id, client.ContainerStartOptions{}); err != nil {
		cancel()
		return n.errorf("start: %w", err)
	}
	r := &run{gone: make(chan struct{})}
	go func() {
		defer close(r.gone)
		defer cancel()
		select {
		case result := <-wait.Result:
			r.err = fmt.Errorf("exit status %d", result.StatusCode)
		case r.err = <-wait.Error:
		}
		if r.err == nil {
			r.err = errors.New("lost sight of it")
		}
	}()
	n.run = r
	return nil
}

// create makes the container, with the files in its data folder.
func (n *node) create(ctx context.Context, files map[string]string) error {
	flags := []string{"--bind", "0.0.0.0", "--dir", dataDir}
	if n.spec.BusPort != 0 {
		flags = append(flags, "--cluster-announce-ip", "127.0.0.1")
	}
	shared := "container:" + n.l.holder
	created, err := n.l.docker.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: n.l.image, WorkingDir: dataDir,
			Cmd:    append(append(n.l.command[:len(n.l.command):len(n.l.command)], flags...), n.spec.Flags...),
			Labels: map[string]string{holderLabel: n.l.holder, "io.shardkit.harness.node": n.spec.Name},
		},
		HostConfig: &container.HostConfig{NetworkMode: container.NetworkMode(shared), PidMode: container.PidMode(shared)},
	})
	if err != nil {
		return n.errorf("create: %w", err)
	}
	n.id = created.ID
	if len(files) == 0 {
		return nil
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, content := range files {
		w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: time.Now()})
		io.WriteString(w, content)
	}
	w.Close() // a buffer takes everything
	_, err = n.l.docker.CopyToContainer(ctx, n.id, client.CopyToContainerOptions{DestinationPath: dataDir, Content: &archive})
	if err != nil {
		return n.errorf("copy its files: %w", err)
	}
	return nil
}

// replace puts a new container in the place of a dead one, with nothing of its data but the files of the Spec: the image may have
// no program that could delete the rest.
func (n *node) replace(ctx context.Context) error {
	files := map[string]string{}
	for name := range n.spec.Files {
		content, err := n.read(ctx, name)
		if err != nil {
			return err
		}
		files[name] = content
	}
	old := n.id
	if err := n.create(ctx, files); err != nil {
		return errors.Join(err, n.l.remove(n.swap(old)))
	}
	return n.l.remove(old)
}

// swap gives the node its former container back, and returns the one it had.
func (n *node) swap(id string) string {
	n.id, id = id, n.id
	return id
}

func (n *node) read(ctx context.Context, name string) (string, error) {
	got, err := n.l.docker.CopyFromContainer(ctx, n.id, client.CopyFromContainerOptions{SourcePath: path.Join(dataDir, name)})
	if err != nil {
		return "", n.errorf("read %s: %w", name, err)
	}
	defer got.Content.Close()
	r := tar.NewReader(got.Content)
	if _, err := r.Next(); err != nil {
		return "", n.errorf("read %s: %w", name, err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return "", n.errorf("read %s: %w", name, err)
	}
	return string(content), nil
}

func (r *run) exited() error {
	select {
	case <-r.gone:
		return r.err
	default:
		return nil
	}
}

func (n *node) current() (string, *run) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id, n.run
}

func (n *node) Kill() error {
	_, r := n.current()
	if r == nil || r.exited() != nil {
		return nil
	}
	if err := n.signal("KILL"); err != nil && r.exited() == nil {
		return err
	}
	<-r.gone
	return nil
}

// Freeze stops the process, not the container: a paused container cannot be killed everywhere.
func (n *node) Freeze() error { return n.signal("STOP") }
func (n *node) Thaw() error   { return n.signal("CONT") }

func (n *node) signal(name string) error {
	ctx, cancel := context.WithTimeout(n.l.ctx, faultTimeout)
	defer cancel()
	id, _ := n.current()
	if _, err := n.l.docker.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: name}); err != nil {
		return n.errorf("signal %s: %w", name, err)
	}
	return nil
}

func (n *node) Exited() error {
	_, r := n.current()
	return r.exited()
}

// PID is not known: what a server reports is its number among the group's processes. A stranger cannot answer in its place, since
// the daemon holds its port.
func (n *node) PID() int { return 0 }

func (n *node) LogTail(lines int) string {
	ctx, cancel := context.WithTimeout(n.l.ctx, faultTimeout)
	defer cancel()
	id, _ := n.current()
	if id == "" {
		return ""
	}
	log, err := n.l.docker.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(lines)})
	if err != nil { // a log is only ever read to explain something else
		return ""
	}
	defer log.Close()
	var out bytes.Buffer
	stdcopy.StdCopy(&out, &out, log)
	return strings.TrimRight(out.String(), "\n")
}

// end keeps the node from starting again, and returns its container.
func (n *node) end() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	return n.id
}

func (n *node) wait() {
	if _, r := n.current(); r != nil {
		<-r.gone
	}
}

func (n *node) errorf(format string, args ...any) error {
	return fmt.Errorf("tcredis: %s: "+format, append([]any{n.spec.Name}, args...)...)
}
