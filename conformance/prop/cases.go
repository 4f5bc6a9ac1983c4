package prop

import "github.com/shardkit/shardkit/conformance"

// Weights is the feature of a ring that takes nodes of different weights.
const Weights conformance.Feature = "weights"

// Cases returns the properties, for Target.Cases.
func Cases() []conformance.Case {
	var all []conformance.Case
	for _, some := range [][]conformance.Case{slotCases, ringCases, setCases} {
		all = append(all, some...)
	}
	return all
}
