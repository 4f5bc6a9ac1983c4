module github.com/shardkit/shardkit/cmd/shardkit

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	github.com/shardkit/shardkit/backends/goredis v0.0.0
	github.com/shardkit/shardkit/backends/rueidis v0.0.0
	github.com/shardkit/shardkit/bench v0.0.0
	github.com/shardkit/shardkit/bench/scenarios v0.0.0
	github.com/shardkit/shardkit/conformance v0.0.0
	github.com/shardkit/shardkit/conformance/prop v0.0.0
	github.com/shardkit/shardkit/harness v0.0.0
	github.com/shardkit/shardkit/proxy v0.0.0
	github.com/shardkit/shardkit/replset v0.0.0
	github.com/shardkit/shardkit/ring v0.0.0
	github.com/shardkit/shardkit/slotmap v0.0.0
	github.com/shardkit/shardkit/tiercache v0.0.0
	github.com/shardkit/shardkit/tiercache/soak v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/term v0.48.0
	mvdan.cc/sh/v3 v3.13.1
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-analyze/bulk v0.1.6 // indirect
	github.com/go-analyze/charts v0.6.4 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/leanovate/gopter v0.2.11 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_golang v1.25.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/shardkit/shardkit/tiercache/metrics v0.0.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/image v0.45.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/shardkit/shardkit/backends/goredis => ../../backends/goredis
	github.com/shardkit/shardkit/backends/rueidis => ../../backends/rueidis
	github.com/shardkit/shardkit/bench => ../../bench
	github.com/shardkit/shardkit/bench/scenarios => ../../bench/scenarios
	github.com/shardkit/shardkit/conformance => ../../conformance
	github.com/shardkit/shardkit/conformance/prop => ../../conformance/prop
	github.com/shardkit/shardkit/harness => ../../harness
	github.com/shardkit/shardkit/proxy => ../../proxy
	github.com/shardkit/shardkit/replset => ../../replset
	github.com/shardkit/shardkit/ring => ../../ring
	github.com/shardkit/shardkit/slotmap => ../../slotmap
	github.com/shardkit/shardkit/tiercache => ../../tiercache
	github.com/shardkit/shardkit/tiercache/metrics => ../../tiercache/metrics
	github.com/shardkit/shardkit/tiercache/soak => ../../tiercache/soak
)
