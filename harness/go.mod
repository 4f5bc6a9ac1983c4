module github.com/shardkit/shardkit/harness

go 1.25
