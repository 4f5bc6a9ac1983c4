module github.com/shardkit/shardkit/slotmap

go 1.25
