// Package ioredis holds a program for Node.js that writes the replicas of a set by hand, with the ioredis client: a peer
// of the scenarios publish and delta. Nothing imports it.
//
//	shardkit bench run publish delta --peer ioredis=tools/peers/ioredis/peer --peer ioredis-cluster=tools/peers/ioredis/peer-cluster
//
// The first is as fast as pipelines get with ioredis, the second as it is mostly written: the difference is that between
// go-pipelines and go-cluster.
//
// The client's version is pinned in package.json and package-lock.json. To try another one, change it there and run
// "npm install --package-lock-only" here.
package ioredis
