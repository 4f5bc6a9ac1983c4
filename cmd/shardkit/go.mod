module github.com/shardkit/shardkit/cmd/shardkit

go 1.26
