package journaltest

import (
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

func ticketPromises() []promise {
	return []promise{
		{"a ticket is taken once, by any node, within its time", ticketTakenOnce},
	}
}

func ticketTakenOnce(f *fixture) {
	for _, secret := range []string{"a", "b"} {
		f.must(f.Threads.PutTicket(f.ctx, secret, threads.Ticket{Workspace: workspace, Token: "olivia", Path: "/" + secret}, time.Minute))
	}
	other := f.node("second")
	got, err := other.Threads.TakeTicket(f.ctx, "a")
	f.must(err)
	same(f, "ticket", got, threads.Ticket{Workspace: workspace, Token: "olivia", Path: "/a"})
	for _, secret := range []string{"a", "c", ""} {
		_, err := f.Threads.TakeTicket(f.ctx, secret)
		f.fails("no ticket", err, storage.ErrNotFound)
	}
	same(f, "stored secrets", f.count("tickets WHERE hash = 'b'"), 0)
	f.clock.advance(time.Minute)
	_, err = f.Threads.TakeTicket(f.ctx, "b")
	f.fails("too late", err, storage.ErrNotFound)
	f.prune()
	same(f, "tickets", f.count("tickets"), 0)
}
