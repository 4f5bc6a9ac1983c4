// Package conformance tells whether an adapter for a Redis client, or a slot function or ring of somebody else's, does
// what shardkit asks of it. In a test it is one call:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Target{
//			Name:   "mine",
//			Client: "example.com/redis/client",
//			Backend: func(ctx context.Context, c conformance.Connection) (replset.Backend, func(), error) {
//				client, err := client.Dial(c.Addrs...)
//				if err != nil {
//					return nil, nil, err
//				}
//				return mine.New(client), client.Close, nil
//			},
//		})
//	}
//
// [Execute] is the same for a program, and returns the [Report], which an author commits beside his adapter.
//
// What is asked is data: a [Case] has a stable id, the requirement in words, a level and a tier; REQUIREMENTS.md lists them
// all. A failure names the requirement, what was seen, how the servers were, and the command that runs this case again
// with the same seed.
//
// Unless servers are named, the suite starts a Redis Cluster of its own, three masters with a replica each, and breaks it:
// it freezes and kills nodes and moves slots. Servers named by Target.Addrs are only used, under keys of a prefix of
// the run's own, and no key is left there.
//
// Passing shows that each rule was kept where the suite looked, on one cluster, for some seconds. It does not show that a
// client is fast, nor that it survives faults of more than one node or of the network. Run it under -race: slices that are
// kept, and state without a lock, show best there.
//
// The module brings no Redis client, no container library and no generator library along. Property tests with gopter are
// a module of their own, joined by Target.Cases = prop.Cases(); package harness starts local server processes and, by
// Target.Servers.Providers, containers.
package conformance
