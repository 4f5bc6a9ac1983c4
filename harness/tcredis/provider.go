package tcredis

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/shardkit/shardkit/harness"
)

// DefaultImage is the image that is run where none is named.
const DefaultImage = "redis:8.0"

// Options says what to run. The zero value works.
type Options struct {
	// Image is the servers' image, and is pulled if it is not there. "" means $SHARDKIT_IMAGE, else DefaultImage.
	Image string
}

// Containers returns the provider that runs servers in containers of the Docker daemon that testcontainers-go finds: by $DOCKER_HOST,
// ~/.testcontainers.properties, the current Docker context, and in the usual places.
func Containers(o Options) harness.Provider { return containers{o} }

type containers struct{ options Options }

func (c containers) Open(ctx context.Context, o harness.Options) (harness.Launcher, error) {
	switch {
	case o.Server != "":
		return nil, fmt.Errorf("tcredis: %w: Options.Server names a program, and containers run an image: set tcredis.Options.Image", harness.ErrUnsupported)
	case o.Proxied && o.Replicas > 0:
		return nil, fmt.Errorf("tcredis: %w: Options.Proxied with Replicas: a replica in a container does not reach its master's proxy", harness.ErrUnsupported)
	}
	docker, err := findDaemon(ctx)
	if err != nil {
		return nil, err
	}
	l := &launcher{docker: docker.Client(), image: cmp.Or(c.options.Image, os.Getenv("SHARDKIT_IMAGE"), DefaultImage)}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := l.findImage(ctx, docker, o.Log); err != nil {
		l.Close()
		return nil, err
	}
	l.sweep(ctx)
	return l, nil
}

// daemonTimeout bounds the search for a daemon: one that hangs is as good as none.
const daemonTimeout = 5 * time.Second

func findDaemon(ctx context.Context) (*testcontainers.DockerProvider, error) {
	type found struct {
		provider *testcontainers.DockerProvider
		err      error
	}
	search := make(chan found, 1)
	go func() { // testcontainers-go takes no context here
		p, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(quiet{}))
		if err == nil {
			_, err = p.Client().Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
		}
		search <- found{p, err}
	}()
	timeout := time.NewTimer(daemonTimeout)
	defer timeout.Stop()
	var err error
	select {
	case f := <-search:
		if f.err == nil {
			return f.provider, nil
		}
		err = f.err
	case <-timeout.C:
		err = fmt.Errorf("no answer within %v", daemonTimeout)
	case <-ctx.Done():
		return nil, fmt.Errorf("tcredis: look for a Docker daemon: %w", ctx.Err())
	}
	return nil, fmt.Errorf("tcredis: %w: no Docker daemon answers: %w: start Docker, or set DOCKER_HOST", harness.ErrNoServer, err)
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// findImage finds out how the image runs its server, after pulling it if need be.
func (l *launcher) findImage(ctx context.Context, docker *testcontainers.DockerProvider, log func(string, ...any)) error {
	inspected, err := l.docker.ImageInspect(ctx, l.image)
	if errdefs.IsNotFound(err) {
		log("tcredis: pulling %s", l.image)
		if err := docker.PullImage(ctx, l.image); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("tcredis: pull %s: %w: run docker pull %s before, or give the start a longer deadline", l.image, ctx.Err(), l.image)
			}
			return fmt.Errorf("tcredis: %w: the image %s is not here and cannot be pulled: %w: set SHARDKIT_IMAGE to one that is, or make some with tools/servers/images",
				harness.ErrNoServer, l.image, err)
		}
		inspected, err = l.docker.ImageInspect(ctx, l.image)
	}
	if err != nil {
		return fmt.Errorf("tcredis: look at the image %s: %w", l.image, err)
	}
	l.imageID = inspected.ID
	if inspected.Config == nil {
		return nil
	}
	if len(inspected.Config.Entrypoint) == 0 && len(inspected.Config.Cmd) > 0 {
		l.command = inspected.Config.Cmd[:1]
	}
	return nil
}
