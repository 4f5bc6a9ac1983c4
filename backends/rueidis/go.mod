module github.com/shardkit/shardkit/backends/rueidis

go 1.26
