package prop_test

import (
	"context"
	"fmt"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/conformance/prop"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
)

// One property, of a backend without a server.
func ExampleCases() {
	report, err := conformance.Execute(context.Background(), conformance.Target{
		Name:       "memory",
		Serverless: true,
		Backend: func(context.Context, conformance.Connection) (replset.Backend, func(), error) {
			return memory.New(), nil, nil
		},
		Cases: prop.Cases(),
		Only:  []string{"PR-001"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range report.Cases {
		if c.ID == "PR-001" {
			fmt.Println(c.Name, c.Status)
		}
	}
	// Output: no-smaller-tag pass
}
