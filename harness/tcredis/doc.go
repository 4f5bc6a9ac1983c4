// Package tcredis runs the servers of package harness in containers, with testcontainers-go.
//
//	c, err := harness.StartCluster(ctx, harness.Options{
//		Replicas:  1,
//		Private:   true,
//		Providers: []harness.Provider{tcredis.Containers(tcredis.Options{Image: "valkey/valkey:8.1"})},
//	})
//
// Everything that package harness does to processes it does to containers: kill, freeze, restart with data or without, move
// slots, fail over, TLS and users; and cut, stall or slow the network, but for clusters with replicas
// (harness.ErrUnsupported), since a replica in a container does not find its master's proxy outside.
//
// Images: any whose entry point takes a server's flags and that has a cat, as the official ones of Redis and Valkey do. See
// [Options.Image]. On a machine without a registry, tools/servers/images makes some.
//
// The servers of a group share the network and the process ids of one more container, the holder. It publishes their ports on
// 127.0.0.1, the same ones inside and outside, so that what a cluster's nodes say of their addresses is right for clients
// too, on Linux as on Docker Desktop; not with a daemon on another machine.
//
// Guaranteed: when the program that started them ends, however it ends, the holder's input is closed, the holder ends, and the kernel
// ends the servers with it. Dead containers of a program that was killed are deleted by the next start.
// testcontainers-go's own reaper, a container with the daemon's socket in it, is not needed and not started.
//
// Not guaranteed: the daemon's own death. Containers that a daemon loses sight of are its own to find.
//
// Errors begin with "tcredis:" or "harness:". One that is harness.ErrNoServer says that there is no Docker, or no image.
package tcredis
