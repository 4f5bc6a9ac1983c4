// Package integration holds tests of shardkit's parts together, on real servers.
// It is not released.
package integration
