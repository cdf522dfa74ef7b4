package main

import (
	"context"
	"sync"
)

// chatter has all conversations go on at once, each over a connection of its own:
// so many messages, the next one when the last was acknowledged.
func chatter(ctx context.Context, l *ledger, b *balancer, conversations []*conversation, messages int) {
	pacer := newPacer(1e6)
	var group sync.WaitGroup
	for n, c := range conversations {
		s := newSender(l, b, []*conversation{c}, mix{}, pacer, 1, uint64(n))
		left := messages
		group.Go(func() {
			s.run(ctx, nil, func() bool { left--; return left >= 0 })
		})
	}
	group.Wait()
}
