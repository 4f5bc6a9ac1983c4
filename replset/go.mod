module github.com/shardkit/shardkit/replset

go 1.25

require github.com/shardkit/shardkit/slotmap v0.0.0

replace github.com/shardkit/shardkit/slotmap => ../slotmap
