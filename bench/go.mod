module github.com/shardkit/shardkit/bench

go 1.25

require github.com/HdrHistogram/hdrhistogram-go v1.4.0

require go.uber.org/goleak v1.3.0
