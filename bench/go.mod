module github.com/shardkit/shardkit/bench

go 1.25

require github.com/HdrHistogram/hdrhistogram-go v1.4.0

require (
	github.com/shardkit/shardkit/harness v0.0.0
	go.uber.org/goleak v1.3.0
)

replace github.com/shardkit/shardkit/harness => ../harness
