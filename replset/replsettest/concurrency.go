package replsettest

import (
	"context"
	"fmt"
	"sync"
)

var concurrencyRules = []Rule{
	{
		"RS-028", "concurrent-use",
		"the methods are called from many goroutines at once, and each call gets its own replies",
		func(p *probe) error {
			const callers, rounds = 16, 20
			var wg sync.WaitGroup
			var mu sync.Mutex
			var first error
			for c := range callers {
				wg.Go(func() {
					for i := range rounds {
						if err := p.caller(ways[(c+i)%3], fmt.Sprint(c, "-", i)); err != nil {
							mu.Lock()
							if first == nil {
								first = fmt.Errorf("%s: %w", ways[(c+i)%3].name, err)
							}
							mu.Unlock()
							return
						}
					}
				})
			}
			wg.Wait()
			return first
		},
	},
}

// caller writes a value of its own and reads it back.
func (p *probe) caller(w way, name string) error {
	key := p.key("caller" + name)
	if err := p.steps(w, step{[]string{"SET", key, name}, "OK"}); err != nil {
		return err
	}
	keys, cmds := make([]string, 10), make([][]string, 10)
	for i := range keys {
		keys[i], cmds[i] = key, []string{"GET", key}
		if i%2 == 1 {
			keys[i] = p.key(fmt.Sprint("absent", name, i))
			cmds[i] = []string{"GET", keys[i]}
		}
	}
	for i, v := range p.Pipeline(context.Background(), keys, cmds) {
		var want any = name
		if i%2 == 1 {
			want = nil
		}
		if err := same(v, want); err != nil {
			return err
		}
	}
	return p.steps(w, step{[]string{"GET", key}, name})
}
