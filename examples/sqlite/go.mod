module github.com/shardkit/shardkit/examples/sqlite

go 1.26.0

require (
	github.com/redis/go-redis/v9 v9.23.0
	github.com/shardkit/shardkit/backends/goredis v0.0.0
	github.com/shardkit/shardkit/harness v0.0.0
	github.com/shardkit/shardkit/tiercache v0.0.0
	modernc.org/sqlite v1.57.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/shardkit/shardkit/ring v0.0.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.21.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	modernc.org/libc v1.74.4 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
)

replace (
	github.com/shardkit/shardkit/backends/goredis => ../../backends/goredis
	github.com/shardkit/shardkit/harness => ../../harness
	github.com/shardkit/shardkit/replset => ../../replset
	github.com/shardkit/shardkit/ring => ../../ring
	github.com/shardkit/shardkit/slotmap => ../../slotmap
	github.com/shardkit/shardkit/tiercache => ../../tiercache
)
