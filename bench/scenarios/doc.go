// Package scenarios holds shardkit's own measurements: what a replicated set costs beside the ways to do without one, on
// a real Redis Cluster.
//
//	parts, err := scenarios.Select("publish", "delta")
//	...
//	results, err := scenarios.Run(ctx, parts, &scenarios.Target{Client: client}, nil)
//	scenarios.WriteSummary(os.Stdout, results)
//
// A scenario is a question with one or several parts, such as sizes of the set; a part is one run of package bench, whose
// documentation says how variants are interleaved and compared. All lists the scenarios.
//
// # Guaranteed
//
// Every key begins with Target.Prefix and is gone when Run returns, also after an interruption. Variants of a part do
// the same work to the same content, and those that write are checked: a few replicas are read back at the end.
//
// # Not guaranteed
//
// That figures of two runs can be compared, other than counters and ratios. That a busy cluster does not notice: a part
// that publishes writes up to some hundred megabytes, and Part.Doc says how much is written.
//
// # Errors
//
// bench.ErrInterrupted when ctx ends: the results so far are there, and parts that were not reached stand among them with
// a mark that says so. Select returns a *UnknownError. Anything else comes from the cluster or from bench.
package scenarios

//go:generate go -C internal/figures run .
