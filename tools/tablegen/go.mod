module github.com/shardkit/shardkit/tools/tablegen

go 1.25
