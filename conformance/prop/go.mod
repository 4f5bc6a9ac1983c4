module github.com/shardkit/shardkit/conformance/prop

go 1.25

require (
	github.com/leanovate/gopter v0.2.11
	github.com/shardkit/shardkit/conformance v0.0.0
	github.com/shardkit/shardkit/harness v0.0.0
	github.com/shardkit/shardkit/replset v0.0.0
	github.com/shardkit/shardkit/ring v0.0.0
	github.com/shardkit/shardkit/slotmap v0.0.0
	go.uber.org/goleak v1.3.0
)

replace (
	github.com/shardkit/shardkit/conformance => ..
	github.com/shardkit/shardkit/harness => ../../harness
	github.com/shardkit/shardkit/replset => ../../replset
	github.com/shardkit/shardkit/ring => ../../ring
	github.com/shardkit/shardkit/slotmap => ../../slotmap
)
