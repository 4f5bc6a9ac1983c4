module github.com/shardkit/shardkit/tools/docs

go 1.26.0
