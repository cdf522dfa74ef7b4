package journaltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/assembly/stream"
	"parley/ingest/event"
	"parley/ingest/journal"
)

func retentionPromises() []promise {
	return []promise{
		{"raw bodies, then keys, then what agents said are taken away", pruned},
		{"what is pending is kept however old it is", pendingKept},
		{"dead letters keep their body as long as their key", deadLettersKept},
		{"pruning goes on where it was ended", pruneResumes},
		{"one transaction of pruning is bounded", pruneBounded},
		{"the id of an envelope is not given twice", idsNotReused},
	}
}

func (f *fixture) prune() journal.Pruned {
	f.Helper()
	pruned, err := f.Prune(f.ctx, journal.DefaultRetention())
	f.must(err)
	return pruned
}

const day = 24 * time.Hour

func pruned(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	custody := f.accept(a)
	f.record(custody.Thread, custody.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, runs)
	reply := answer("Hello.")
	reply.Events = []stream.Message{{Type: stream.Thought, Text: "hm"}, {Type: stream.Answer, Text: "Hello."}}
	f.commit(f.begin(threadKey(1)), reply)

	f.clock.advance(8*day - time.Hour)
	same(f, "before its time", f.prune(), journal.Pruned{})
	f.clock.advance(time.Hour)
	f.message(threadKey(1), said("C1/2", "young"), passive)
	same(f, "after 8 days", f.prune(), journal.Pruned{Bodies: 1})
	same(f, "body", len(f.body(custody.ID)), 0)
	same(f, "known again", f.accept(a).Duplicate, true)
	f.clock.advance(22 * day)
	same(f, "after 30 days", f.prune(), journal.Pruned{Bodies: 1, Envelopes: 1})
	same(f, "known again", f.accept(a).Duplicate, false)
	f.clock.advance(60 * day)
	same(f, "after 90 days", f.prune().RunEvents, 2)
	same(f, "run events", f.count("run_events"), 0)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Hello.", "3 young"})
	same(f, "once more", f.prune(), journal.Pruned{})
}

func pendingKept(f *fixture) {
	custody := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	waits := f.accept(f.envelope(event.KindReaction, "", "C1/1"))
	f.message(threadKey(2), said("C1/2", "done"), passive)
	f.message(threadKey(2), said("C1/3", "done"), passive)
	f.clock.advance(31 * day)
	same(f, "pruned", f.prune(), journal.Pruned{Bodies: 2, Envelopes: 1})
	same(f, "body", len(f.body(custody.ID)) > 0 && len(f.body(waits.ID)) > 0, true)
	f.record(custody.Thread, custody.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "late")}, passive)
	same(f, "once it is settled", f.prune().Envelopes, 1)
}

func deadLettersKept(f *fixture) {
	custody := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	f.must(f.Bury(f.ctx, f.claim(custody.Thread), custody.ID, errors.New("text: must be a string")))
	f.clock.advance(29 * day)
	f.message(threadKey(2), said("C1/2", "young"), passive)
	same(f, "pruned", f.prune(), journal.Pruned{})
	same(f, "body", len(f.body(custody.ID)) > 0, true)
	f.clock.advance(day)
	same(f, "pruned", f.prune(), journal.Pruned{Envelopes: 1})
}

// many are envelopes that are settled at once.
func (f *fixture) many(n int) {
	f.Helper()
	for i := range n {
		a := f.envelope(event.KindOther, "", fmt.Sprint(i))
		a.Keys.Settled = event.Ignore(event.ReasonNotAnEvent)
		f.accept(a)
	}
}

func pruneResumes(f *fixture) {
	f.many(250)
	f.clock.advance(9 * day)
	ctx, cancel := context.WithCancel(f.ctx)
	ending := journal.New(&ends{Engine: f.engine, after: 1, end: cancel}, journal.Options{Now: f.clock.Now})
	first, err := ending.Prune(ctx, journal.DefaultRetention())
	f.fails("a pruning that is ended", err, context.Canceled)
	same(f, "some of them", first.Bodies > 0 && first.Bodies < 250, true)
	second, err := f.successor("second").Prune(f.ctx, journal.DefaultRetention())
	f.must(err)
	same(f, "all of them, once each", first.Bodies+second.Bodies, 250)
}

// ends is an engine that ends its caller after some writes.
type ends struct {
	journal.Engine
	after int
	end   func()
}

func (e *ends) Write(ctx context.Context, fn func(journal.Tx) error) error {
	err := e.Engine.Write(ctx, fn)
	if e.after--; e.after == 0 {
		e.end()
	}
	return err
}

func pruneBounded(f *fixture) {
	f.many(350)
	f.clock.advance(31 * day)
	most := &largest{Engine: f.engine}
	_, err := journal.New(most, journal.Options{Now: f.clock.Now}).Prune(f.ctx, journal.DefaultRetention())
	f.must(err)
	same(f, "rows left", f.count("envelopes"), 1)
	same(f, "most rows of one transaction within bounds", most.rows > 0 && most.rows <= 101, true)
}

// largest is an engine that knows its largest transaction.
type largest struct {
	journal.Engine
	rows int64
}

func (l *largest) Write(ctx context.Context, fn func(journal.Tx) error) error {
	rows := int64(0)
	err := l.Engine.Write(ctx, func(tx journal.Tx) error {
		rows = 0
		return fn(changes{tx, &rows})
	})
	l.rows = max(l.rows, rows)
	return err
}

type changes struct {
	journal.Tx
	rows *int64
}

func (c changes) Exec(query string, args ...any) (int64, error) {
	n, err := c.Tx.Exec(query, args...)
	*c.rows += n
	return n, err
}

func idsNotReused(f *fixture) {
	f.message(threadKey(1), said("C1/1", "old"), passive)
	f.message(threadKey(1), said("C1/2", "old"), passive)
	f.clock.advance(31 * day)
	f.prune()
	young := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/3"))
	f.record(young.Thread, young.ID, event.Event{Kind: event.KindMessage, Message: said("C1/3", "young")}, passive)
	f.change(threadKey(1), deleted("C1/1"), nil)
	f.change(threadKey(1), deleted("C1/2"), nil)
	same(f, "body of another message", len(f.body(young.ID)) > 0, true)
}
