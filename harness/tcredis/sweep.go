package tcredis

import (
	"context"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// youngest is how old a holder has to be to pass for forgotten, if it has not been started.
const youngest = time.Minute

// sweep deletes the containers of programs that are gone: those whose holder has ended, since it ends only with its program. It
// reports nothing: what it cannot delete is not in the way.
func (l *launcher) sweep(ctx context.Context) {
	list, err := l.docker.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", holderLabel),
	})
	if err != nil {
		return
	}
	holders := map[string]bool{}
	for _, c := range list.Items {
		if c.Labels[holderLabel] == "" {
			young := time.Since(time.Unix(c.Created, 0)) < youngest
			holders[c.ID] = c.State == container.StateRunning || c.State == container.StateCreated && young
		}
	}
	for _, c := range list.Items {
		holder := c.Labels[holderLabel]
		if holder == "" {
			holder = c.ID
		}
		if !holders[holder] {
			l.remove(c.ID)
		}
	}
}
