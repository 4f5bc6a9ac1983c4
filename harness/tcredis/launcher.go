package tcredis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/shardkit/shardkit/harness"
)

// Labels of every container of ours. Its value is the id of the holder, or "" for the holder itself.
const holderLabel = "io.shardkit.harness.holder"

// closeTimeout bounds the end of a group. Each of its containers takes some 0.1 s.
const closeTimeout = 30 * time.Second

// A launcher runs the containers of one group.
type launcher struct {
	docker  client.APIClient
	image   string
	imageID string
	command []string // the server's program, where the image has no entry point

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu     sync.Mutex
	holder string    // its id, "" before it is created
	input  io.Closer // the holder's: it ends when this is closed, by us or by our end
	nodes  []*node

	once sync.Once
	err  error
}

func (l *launcher) Describe(v harness.Version) string {
	return fmt.Sprintf("container: %v (%s)", v, l.image)
}

// versions remembers what images answered, by their ids: asking takes a container.
var versions sync.Map

func (l *launcher) Version(ctx context.Context) (harness.Version, error) {
	if v, ok := versions.Load(l.imageID); ok {
		return v.(harness.Version), nil
	}
	out, err := l.output(ctx, "--version")
	if err != nil {
		return harness.Version{}, fmt.Errorf("tcredis: ask %s for its version: %w", l.image, err)
	}
	v, err := harness.ParseVersion(out)
	if err != nil {
		return harness.Version{}, fmt.Errorf("tcredis: %s: %w", l.image, err)
	}
	versions.Store(l.imageID, v)
	return v, nil
}

// output runs the server with the arguments, and returns what it wrote.
func (l *launcher) output(ctx context.Context, args ...string) (string, error) {
	created, err := l.docker.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: l.image, Cmd: append(l.command[:len(l.command):len(l.command)], args...), Labels: map[string]string{holderLabel: ""},
		},
		HostConfig: &container.HostConfig{AutoRemove: true, NetworkMode: "none"},
	})
	if err != nil {
		return "", err
	}
	attached, err := l.docker.ContainerAttach(ctx, created.ID, client.ContainerAttachOptions{Stream: true, Stdout: true, Stderr: true})
	if err == nil {
		defer attached.Close()
		stop := context.AfterFunc(ctx, attached.Close)
		defer stop()
		_, err = l.docker.ContainerStart(ctx, created.ID, client.ContainerStartOptions{})
	}
	if err != nil {
		return "", errors.Join(err, l.remove(created.ID))
	}
	var out bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &out, attached.Reader)
	return out.String(), errors.Join(ctx.Err(), err)
}

func (l *launcher) Launch(ctx context.Context, specs []harness.Spec) ([]harness.Server, error) {
	if err := l.hold(ctx, specs); err != nil {
		return nil, err
	}
	servers := make([]harness.Server, len(specs))
	errs := make([]error, len(specs))
	var wg sync.WaitGroup
	for i, spec := range specs {
		n := &node{l: l, spec: spec}
		l.nodes = append(l.nodes, n)
		servers[i] = n
		wg.Go(func() { errs[i] = n.Start(ctx, false) })
	}
	wg.Wait()
	return servers, errors.Join(errs...)
}

// hold starts the holder. The daemon closes its input when the connection that it comes through is lost (StdinOnce), and cat then
// ends. It is process 1 of all the group's processes, so the kernel ends those as well.
func (l *launcher) hold(ctx context.Context, specs []harness.Spec) error {
	exposed, published := network.PortSet{}, network.PortMap{}
	for _, spec := range specs {
		for _, p := range []int{spec.Port, spec.BusPort} {
			if port, ok := network.PortFrom(uint16(p), network.TCP); ok && p != 0 {
				exposed[port] = struct{}{}
				published[port] = []network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(p)}}
			}
		}
	}
	created, err := l.docker.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: l.image, Entrypoint: []string{"cat"}, ExposedPorts: exposed,
			OpenStdin: true, StdinOnce: true, AttachStdin: true,
			Labels: map[string]string{holderLabel: ""},
		},
		HostConfig: &container.HostConfig{PortBindings: published, AutoRemove: true},
	})
	if err != nil {
		return fmt.Errorf("tcredis: create the holder: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder = created.ID
	// Attached before the start, so that there is no moment at which it would outlive us.
	attached, err := l.docker.ContainerAttach(l.ctx, l.holder, client.ContainerAttachOptions{Stream: true, Stdin: true})
	if err != nil {
		return fmt.Errorf("tcredis: attach to the holder: %w", err)
	}
	l.input = attached.Conn
	if _, err = l.docker.ContainerStart(ctx, l.holder, client.ContainerStartOptions{}); err != nil {
		if portTaken(err) {
			err = fmt.Errorf("%w: %w", harness.ErrAddrInUse, err)
		}
		return fmt.Errorf("tcredis: start the holder: %w", err)
	}
	return nil
}

func portTaken(err error) bool {
	for _, text := range []string{"port is already allocated", "address already in use", "ports are not available"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func (l *launcher) Close() error {
	l.once.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		var ids []string
		if l.holder != "" {
			l.err = l.remove(l.holder) // every process ends with it
		}
		if l.input != nil {
			l.input.Close()
		}
		for _, n := range l.nodes {
			if id := n.end(); id != "" {
				ids = append(ids, id)
			}
		}
		errs := make([]error, len(ids))
		var wg sync.WaitGroup
		for i, id := range ids {
			wg.Go(func() { errs[i] = l.remove(id) })
		}
		wg.Wait()
		l.cancel()
		for _, n := range l.nodes {
			n.wait()
		}
		l.err = errors.Join(append(errs, l.err, l.docker.Close())...)
	})
	return l.err
}

// remove deletes a container with its data, running or not, and returns when it is gone.
func (l *launcher) remove(id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), closeTimeout)
	defer cancel()
	_, err := l.docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) { // the daemon, or another program's sweep, is about to
		wait := l.docker.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
		select {
		case <-wait.Result:
			err = nil
		case err = <-wait.Error:
		}
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("tcredis: remove a container: %w", err)
	}
	return nil
}
