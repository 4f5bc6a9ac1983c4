// Package replsettest checks that a replset.Backend keeps its contract.
//
// An adapter's own test calls it, over a real Redis Cluster:
//
//	func TestContract(t *testing.T) {
//		replsettest.Run(t, func(t *testing.T) replset.Backend {
//			return mine.New(client)
//		})
//	}
//
// Each rule is a subtest; one that fails says the rule in words, and what the
// backend did instead. Run it under -race: slices that are kept, and state
// without a lock, show best there. It takes a few seconds, and touches only keys
// that begin with "replsettest:", which it deletes.
//
// Passing shows that the adapter is right on a cluster that is well. It shows
// nothing about one that is not: redirects, failovers and time-outs take
// servers that a test can break, and belong in the adapter's own tests.
package replsettest
