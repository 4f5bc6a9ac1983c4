module github.com/shardkit/shardkit/tiercache

go 1.25.0

require (
	github.com/maypok86/otter/v2 v2.4.0
	github.com/shardkit/shardkit/ring v0.0.0
	github.com/sony/gobreaker/v2 v2.4.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.20.0
)

replace github.com/shardkit/shardkit/ring => ../ring
