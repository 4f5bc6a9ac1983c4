module github.com/shardkit/shardkit/bench/scenarios

go 1.26.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/shardkit/shardkit/backends/goredis v0.0.0
	github.com/shardkit/shardkit/bench v0.0.0
	github.com/shardkit/shardkit/harness v0.0.0
	github.com/shardkit/shardkit/replset v0.0.0
	github.com/shardkit/shardkit/ring v0.0.0
	github.com/shardkit/shardkit/slotmap v0.0.0
	github.com/shardkit/shardkit/tiercache v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.20.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace (
	github.com/shardkit/shardkit/backends/goredis => ../../backends/goredis
	github.com/shardkit/shardkit/bench => ..
	github.com/shardkit/shardkit/harness => ../../harness
	github.com/shardkit/shardkit/replset => ../../replset
	github.com/shardkit/shardkit/ring => ../../ring
	github.com/shardkit/shardkit/slotmap => ../../slotmap
	github.com/shardkit/shardkit/tiercache => ../../tiercache
)
