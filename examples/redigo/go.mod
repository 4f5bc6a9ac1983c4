module github.com/shardkit/shardkit/examples/redigo

go 1.26.0

require (
	github.com/gomodule/redigo v1.9.3
	github.com/mna/redisc v1.4.0
	github.com/shardkit/shardkit/conformance v0.0.0
	github.com/shardkit/shardkit/replset v0.0.0
	github.com/shardkit/shardkit/tiercache v0.0.0
)

require (
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/shardkit/shardkit/harness v0.0.0 // indirect
	github.com/shardkit/shardkit/ring v0.0.0 // indirect
	github.com/shardkit/shardkit/slotmap v0.0.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
)

replace (
	github.com/shardkit/shardkit/conformance => ../../conformance
	github.com/shardkit/shardkit/harness => ../../harness
	github.com/shardkit/shardkit/replset => ../../replset
	github.com/shardkit/shardkit/ring => ../../ring
	github.com/shardkit/shardkit/slotmap => ../../slotmap
	github.com/shardkit/shardkit/tiercache => ../../tiercache
)
