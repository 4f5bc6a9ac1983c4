module github.com/shardkit/shardkit/tools/peers

go 1.26.0

require (
	github.com/buraksezer/consistent v0.10.0
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/dgryski/go-jump v0.0.0-20170409065014-e1f439676b57
	github.com/go-redis/cache/v9 v9.0.0
	github.com/golang/groupcache v0.0.0-20241129210726-2c02b8208cf8
	github.com/kkdai/maglev v0.2.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	github.com/serialx/hashring v0.0.0-20200727003509-22c0c7ab6b1b
	github.com/shardkit/shardkit/bench v0.0.0
	github.com/shardkit/shardkit/conformance v0.0.0
	github.com/shardkit/shardkit/conformance/prop v0.0.0
	github.com/shardkit/shardkit/harness v0.0.0
	github.com/shardkit/shardkit/ring v0.0.0
	github.com/shardkit/shardkit/slotmap v0.0.0
	github.com/shardkit/shardkit/tiercache v0.0.0
	stathat.com/c/consistent v1.0.0
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/dchest/siphash v1.2.2 // indirect
	github.com/klauspost/compress v1.13.6 // indirect
	github.com/leanovate/gopter v0.2.11 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/shardkit/shardkit/replset v0.0.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	github.com/vmihailenco/go-tinylfu v0.2.2 // indirect
	github.com/vmihailenco/msgpack/v5 v5.3.4 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace (
	github.com/shardkit/shardkit/bench => ../../bench
	github.com/shardkit/shardkit/conformance => ../../conformance
	github.com/shardkit/shardkit/conformance/prop => ../../conformance/prop
	github.com/shardkit/shardkit/harness => ../../harness
	github.com/shardkit/shardkit/replset => ../../replset
	github.com/shardkit/shardkit/ring => ../../ring
	github.com/shardkit/shardkit/slotmap => ../../slotmap
	github.com/shardkit/shardkit/tiercache => ../../tiercache
)
