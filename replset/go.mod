module github.com/shardkit/shardkit/replset

go 1.25
