module github.com/shardkit/shardkit/tools/release

go 1.26.0

require (
	github.com/shardkit/shardkit/harness v0.0.0
	golang.org/x/mod v0.43.0
)

require github.com/google/licensecheck v0.3.1

replace github.com/shardkit/shardkit/harness => ../../harness
