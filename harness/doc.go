// Package harness runs real Redis and Valkey servers for tests and demos, and breaks them on purpose.
//
// [StartCluster] gives a Redis Cluster, [StartShards] gives independent servers. Both take what is there, in this
// order: servers named by address ($SHARDKIT_CLUSTER, $SHARDKIT_SHARDS), processes of a redis-server or valkey-server
// found on this machine, and then whatever [Provider] the caller adds, such as containers. [Group.Provider] says
// which it was. If there is nothing, the error lists what was looked for and the command that installs it.
//
//	c, err := harness.StartCluster(ctx, harness.Options{Replicas: 1})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	owner, err := c.Owner(ctx, 42)
//	if err != nil {
//		return err
//	}
//	owner.Kill()           // its replica is promoted in about 2 s
//	err = c.WaitReady(ctx) // returns when every live node agrees on that
//	fmt.Print(c.Timeline())
//
// Guaranteed: on Linux a server never outlives the program that started it by more than a moment, even when the program is
// killed with SIGKILL, and the folders of such a program are swept by the next start. After Close no process, goroutine
// or folder is left.
//
// Not guaranteed: that a port stays ours while its server is dead. A restart finds a taken port only by chance, and
// then says so.
//
// Tests want package harnesstest, which skips, fails and cleans up as tests do.
//
// Errors begin with "harness:". Those worth a branch are [ErrNoServer], [ErrUnsupported] and [ReplyError].
// The facts about clusters are those of https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/.
package harness
