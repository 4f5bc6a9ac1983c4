module github.com/shardkit/shardkit/tools/peers

go 1.26
