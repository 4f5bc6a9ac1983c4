package ring

import (
	"math"
	"math/rand/v2"
)

// randomNodes returns n nodes whose weights lie between 1/4 and 4, a third of them 1.
func randomNodes(r *rand.Rand, n int) []Node {
	nodes := Nodes(randomNames(r, n)...)
	for i := range nodes {
		if r.IntN(3) > 0 {
			nodes[i].Weight = math.Exp2(r.Float64()*4 - 2)
		}
	}
	return nodes
}
