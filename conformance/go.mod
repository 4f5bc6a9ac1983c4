module github.com/shardkit/shardkit/conformance

go 1.25.0

require (
	github.com/shardkit/shardkit/harness v0.0.0
	github.com/shardkit/shardkit/replset v0.0.0
	github.com/shardkit/shardkit/ring v0.0.0
	github.com/shardkit/shardkit/slotmap v0.0.0
	github.com/shardkit/shardkit/tiercache v0.0.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
)

replace (
	github.com/shardkit/shardkit/harness => ../harness
	github.com/shardkit/shardkit/replset => ../replset
	github.com/shardkit/shardkit/ring => ../ring
	github.com/shardkit/shardkit/slotmap => ../slotmap
	github.com/shardkit/shardkit/tiercache => ../tiercache
)
