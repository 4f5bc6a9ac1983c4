module github.com/shardkit/shardkit/integration

go 1.26
