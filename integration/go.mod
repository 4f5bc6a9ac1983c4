module github.com/shardkit/shardkit/integration

go 1.26.0

require (
	github.com/klauspost/compress v1.20.4
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2
	github.com/shardkit/shardkit/backends/goredis v0.0.0
	github.com/shardkit/shardkit/backends/rueidis v0.0.0
	github.com/shardkit/shardkit/conformance v0.0.0
	github.com/shardkit/shardkit/conformance/prop v0.0.0
	github.com/shardkit/shardkit/harness v0.0.0
	github.com/shardkit/shardkit/replset v0.0.0
	github.com/shardkit/shardkit/slotmap v0.0.0
	github.com/shardkit/shardkit/tiercache v0.0.0
	github.com/shardkit/shardkit/tiercache/codec/compress v0.0.0
	github.com/shardkit/shardkit/tiercache/codec/msgpack v0.0.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/leanovate/gopter v0.2.11 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/shardkit/shardkit/ring v0.0.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)

replace (
	github.com/shardkit/shardkit/backends/goredis => ../backends/goredis
	github.com/shardkit/shardkit/backends/rueidis => ../backends/rueidis
	github.com/shardkit/shardkit/conformance => ../conformance
	github.com/shardkit/shardkit/conformance/prop => ../conformance/prop
	github.com/shardkit/shardkit/harness => ../harness
	github.com/shardkit/shardkit/replset => ../replset
	github.com/shardkit/shardkit/ring => ../ring
	github.com/shardkit/shardkit/slotmap => ../slotmap
	github.com/shardkit/shardkit/tiercache => ../tiercache
	github.com/shardkit/shardkit/tiercache/codec/compress => ../tiercache/codec/compress
	github.com/shardkit/shardkit/tiercache/codec/msgpack => ../tiercache/codec/msgpack
)
