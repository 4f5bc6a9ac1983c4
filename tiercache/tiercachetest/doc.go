// Package tiercachetest checks that a tiercache.Shard keeps its contract.
//
// An adapter's own test calls it, over a real Redis:
//
//	func TestContract(t *testing.T) {
//		tiercachetest.Run(t, func(t *testing.T) tiercache.Shard {
//			return mine.NewShard(client)
//		})
//	}
//
// Each rule is a subtest; one that fails says the rule in words, and what the
// shard did instead. Run it under -race: slices that are kept, and functions
// called by two goroutines, show best there. It takes a few seconds, touches only
// keys and channels that begin with "tiercachetest:", deletes the keys, and has
// the server close connections on which the shard itself has just subscribed.
//
// Passing shows that the adapter is right on a server that is well. It shows
// nothing about one that is not: time-outs, a frozen server and a write that is
// sent twice take a server that a test can break, and belong in the adapter's own
// tests.
package tiercachetest

// compare.go is a copy: a module that both kits shared would come along with every import of replset and tiercache.
//go:generate sh -c "{ echo '// Code generated from replset/replsettest/compare.go by go generate; DO NOT EDIT.'; echo; sed s/replsettest/tiercachetest/ ../../replset/replsettest/compare.go; } >compare.go"
//go:generate sh -c "{ echo '// Code generated from replset/replsettest/late.go by go generate; DO NOT EDIT.'; echo; sed 's/replsettest/tiercachetest/; s/backend/shard/' ../../replset/replsettest/late.go; } >late.go"
