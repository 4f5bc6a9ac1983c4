module github.com/shardkit/shardkit/backends/rueidis

go 1.25.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/shardkit/shardkit/harness v0.0.0
	github.com/shardkit/shardkit/replset v0.0.0
	github.com/shardkit/shardkit/slotmap v0.0.0
	go.uber.org/goleak v1.3.0
)

require golang.org/x/sys v0.47.0 // indirect

replace (
	github.com/shardkit/shardkit/harness => ../../harness
	github.com/shardkit/shardkit/replset => ../../replset
	github.com/shardkit/shardkit/slotmap => ../../slotmap
)
