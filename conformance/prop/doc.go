// Package prop adds property tests to package conformance: random memberships of a ring, random keys, random sequences of writes,
// damage and repair of a replicated set, each compared with a model that is too simple to be wrong. What fails is shrunk to the
// smallest case that still does.
//
//	conformance.Run(t, conformance.Target{
//		Name:    "mine",
//		Backend: connect,
//		Cases:   prop.Cases(),
//	})
//
// A run is decided by Target.Seed: the same seed tries the same cases in the same order. Each case stops after a number of tries or
// some seconds, whichever comes first.
//
// Passing shows that no counterexample was found among some hundred tries, and not that there is none: a fresh seed each time, as
// Target.Seed is 0, finds more than one that stays. A failure is a conformance.Result like any other, with the shrunk case in Seen.
//
// It is a module of its own for the generator library (github.com/leanovate/gopter), which brings many modules along.
package prop
