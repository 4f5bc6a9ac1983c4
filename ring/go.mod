module github.com/shardkit/shardkit/ring

go 1.25
