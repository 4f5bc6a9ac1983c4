// Package bench measures how long operations take against real servers, and how variants of an operation compare.
//
// A Scenario holds variants; Run puts them under load and returns a Result; a Report is results in a file. The load is
// closed loop (each worker asks again when it has its answer) or open loop (a fixed schedule, whatever the servers do).
//
//	s := bench.Scenario{
//		Name: "get", Doc: "one key, 64 bytes",
//		Variants: []bench.Variant{bench.Func("plain", plain), bench.Func("traced", traced)},
//	}
//	res, err := bench.Run(ctx, s, &bench.Options{
//		Load: bench.Load{Mode: bench.Open, Rate: 5000, Duration: 20 * time.Second},
//	})
//	if err != nil && !errors.Is(err, bench.ErrInterrupted) {
//		return err
//	}
//	res.WriteTable(os.Stdout)
//
// # Guaranteed
//
// Open-loop latency counts from the intended start (no coordinated omission): a server that hangs for a second shows a
// second, for all that were due in it. Nothing is dropped or clamped in silence: what did not fit the histogram, what
// failed, what was never finished is counted, and a Result whose figures do not mean what they say has a Mark of kind
// Invalid, with the reason. A generator that was itself late is such a reason.
//
// Variants of one run share its noise. In a closed loop they take turns every 40 operations, in an order drawn anew each
// time; in an open loop each operation of one schedule goes to a variant at random. A comparison is the median of paired
// ratios over 9 rounds with a bootstrap interval, and the baseline runs twice, so that the Result tells how much of a
// difference is none.
//
// # Not guaranteed
//
// Latencies of two runs, or of two machines, are not comparable; ratios within a run and counters per operation are. In a
// closed loop a stall hides itself; use an open loop to see what users see. Percentiles hold operations that succeeded.
//
// # Errors
//
// Messages begin with "bench:" and say what to do. ErrInterrupted is found in the error of a run that was cut short, next
// to the context's own error; the Result is there.
//
// Sources: Gil Tene, "How NOT to Measure Latency"; the log format of https://github.com/HdrHistogram/HdrHistogram.
package bench
