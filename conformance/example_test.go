package conformance_test

import (
	"context"
	"fmt"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
)

// The cases of slots, in a program. Profile replset and the others start servers of their own, unless the target is Serverless.
func ExampleExecute() {
	report, err := conformance.Execute(context.Background(), conformance.Target{
		Name:       "memory",
		Serverless: true,
		Backend: func(context.Context, conformance.Connection) (replset.Backend, func(), error) {
			return memory.New(), nil, nil
		},
		Only: []string{"SL-001", "SL-002"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range report.Cases {
		if c.Status != conformance.StatusSkipped {
			fmt.Println(c.ID, c.Name, c.Status)
		}
	}
	fmt.Println(len(report.Failed()), "failed")
	// Output:
	// SL-001 published-vectors pass
	// SL-002 hash-tag pass
	// 0 failed
}
