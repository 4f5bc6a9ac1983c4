// Package containers holds tests of shardkit's adapters on servers in containers. It is not released.
package containers
