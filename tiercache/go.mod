module github.com/shardkit/shardkit/tiercache

go 1.25
