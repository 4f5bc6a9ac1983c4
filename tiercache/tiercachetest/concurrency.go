package tiercachetest

import (
	"fmt"
	"sync"
)

var concurrencyRules = []Rule{
	{
		"TS-021", "concurrent-use",
		"the methods are called from many goroutines at once, and each call gets its own replies",
		func(p *probe) error {
			const callers, rounds = 16, 20
			var wg sync.WaitGroup
			failed := make(chan error, callers)
			for c := range callers {
				wg.Go(func() {
					for i := range rounds {
						if err := p.caller(ways[(c+i)%3], fmt.Sprint(c, "-", i)); err != nil {
							failed <- fmt.Errorf("%s: %w", ways[(c+i)%3].name, err)
							return
						}
					}
				})
			}
			wg.Wait()
			close(failed)
			return <-failed
		},
	},
}

// caller writes a value of its own and reads it back.
func (p *probe) caller(w way, name string) error {
	key, absent := p.key("caller"+name), p.key("absent"+name)
	if err := p.steps(w, step{[]string{"SET", key, name}, "OK"}); err != nil {
		return err
	}
	var cmds [][]string
	var want []any
	for range 5 {
		cmds = append(cmds, []string{"GET", key}, []string{"GET", absent})
		want = append(want, name, nil)
	}
	if err := same(p.pipeline(cmds), want); err != nil {
		return err
	}
	return p.steps(w, step{[]string{"GET", key}, name})
}
