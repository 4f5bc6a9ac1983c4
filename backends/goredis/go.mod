module github.com/shardkit/shardkit/backends/goredis

go 1.26
