module github.com/shardkit/shardkit/bench

go 1.25
