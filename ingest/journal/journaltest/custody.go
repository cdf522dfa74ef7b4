package journaltest

import (
	"errors"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

func custodyPromises() []promise {
	return []promise{
		{"a key is taken into custody once", keyOnce},
		{"one key accepted many times at once is one envelope", keyOnceConcurrently},
		{"a twin follows the first one's thread", twinFollows},
		{"what is done to a post of ours goes to the thread that it was said in", holderFollows},
		{"an envelope that needs no work is settled at once", settledAtOnce},
		{"an envelope about a message goes to the message's thread", subjectsThread},
		{"raw bytes come back exactly", rawBytes},
		{"a free thread is claimed by who accepts for it", claimOnAccept},
		{"claims are counted, and not where their end was orderly", claimsCounted},
		{"envelopes come in the order of custody, none past one that waits", envelopeOrder},
		{"a dead letter lets its thread go on", buried},
		{"an envelope comes to its end once", settledOnce},
		{"a payload is stored whose twin appears meanwhile in another thread", twinMeanwhile},
	}
}

func keyOnce(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	first := f.accept(a)
	a.Envelope.Body = []byte("the same message, sent again")
	second := f.accept(a)
	same(f, "second", second, journal.Custody{ID: first.ID, Duplicate: true})

	a.Envelope.Workspace = "other"
	a.Keys.Thread = "slack:other:C1:1"
	same(f, "duplicate in another workspace", f.accept(a).Duplicate, false)
	same(f, "envelopes", f.count("envelopes"), 2)
}

func keyOnceConcurrently(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	const callers = 32
	custodies, errs := make([]journal.Custody, callers), make([]error, callers)
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() { custodies[i], errs[i] = f.Accept(f.ctx, a) })
	}
	wait.Wait()
	f.must(errors.Join(errs...))
	first := 0
	for _, c := range custodies {
		same(f, "id", c.ID, custodies[0].ID)
		if !c.Duplicate {
			first++
		}
	}
	same(f, "how often it was the first", first, 1)
	m := said("C1/1", "hi")
	outcome := f.record(f.thread(threadKey(1)), custodies[0].ID, event.Event{Kind: event.KindMessage, Message: m}, runs)
	same(f, "pending afterwards", outcome.Pending, 0)
}

func twinFollows(f *fixture) {
	first := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	twin := f.envelope(event.KindMessage, threadKey(2), "C1/1")
	twin.Keys.Twin = first.Keys.Dedupe
	same(f, "threads", f.accept(twin).Thread == f.accept(first).Thread, false)

	third := f.envelope(event.KindMessage, threadKey(3), "C1/1")
	third.Keys.Twin = first.Keys.Dedupe
	same(f, "the twin's thread", f.accept(third).Thread, f.thread(threadKey(1)))
	same(f, "threads", f.count("threads"), 2)
}

func holderFollows(f *fixture) {
	f.exchange(threadKey(2), "C1/1", "hi", "May I?", "May I?")
	f.deliver(threadKey(2), "C1/9")
	f.message(threadKey(2), said("C1/2", "hum"), passive)
	for holder, want := range map[string]event.ThreadKey{"C1/9": threadKey(2), "C1/2": threadKey(1), "C1/none": threadKey(1)} {
		a := f.envelope(event.KindAction, threadKey(1), "C1/action-"+holder)
		a.Keys.Holder = holder
		custody := f.accept(a)
		same(f, holder, custody.Thread, f.thread(want))
		again := f.accept(a)
		same(f, "again", []any{again.ID, again.Duplicate}, []any{custody.ID, true})
		m := said("C1/action-"+holder, "Yes")
		f.record(custody.Thread, custody.ID, event.Event{Kind: event.KindAction, Message: m}, passive)
	}
	same(f, "its thread", f.lines(threadKey(2)), []string{"1 hi", "2 May I?", "3 hum", "4 Yes"})
}

func settledAtOnce(f *fixture) {
	for _, fate := range []*event.Fate{
		event.Ignore(event.ReasonOtherWorkspace), event.Refuse(errors.New("ts: must be a string")),
	} {
		a := f.envelope(event.KindOther, threadKey(1), "")
		a.Keys.Settled = fate
		custody := f.accept(a)
		same(f, "custody", custody, journal.Custody{ID: custody.ID, Settled: fate})
		settled, err := f.Envelope(f.ctx, custody.ID)
		f.must(err)
		same(f, "settled", settled.Fate, *fate)
	}
	same(f, "threads", f.count("threads"), 0)
	backlog, err := f.Backlog(f.ctx)
	f.must(err)
	same(f, "backlog", backlog, journal.Backlog{DeadLetters: 1})
}

func subjectsThread(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	same(f, "thread", f.accept(f.envelope(event.KindReaction, "", "C1/1")).Thread, f.thread(threadKey(1)))
	f.exchange(threadKey(2), "C1/2", "hello", "Yes?", "Yes?")
	f.deliver(threadKey(2), "C1/3")
	same(f, "thread of a post of ours", f.accept(f.envelope(event.KindReaction, "", "C1/3")).Thread, f.thread(threadKey(2)))
}

func rawBytes(f *fixture) {
	for _, body := range [][]byte{{}, {0}, []byte("\xff\xfe\x00 \r\n 'quoted' \" é 😀"), make([]byte, 100_000)} {
		a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
		a.Envelope.Body = body
		same(f, "body", string(f.body(f.accept(a).ID)), string(body))
	}
}

func claimOnAccept(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	a.Claim = true
	mine := f.accept(a)
	same(f, "claimed", mine.Fence != 0, true)
	_, err := f.Record(f.ctx, &journal.Lease{Thread: mine.Thread, Fence: mine.Fence},
		entry(mine.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, runs))
	f.must(err)

	free := f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/2"))
	same(f, "claimed without being asked to", free.Fence, 0)

	other := process(f.failing, f.ctx, f.engine, f.clock, "second", time.Minute)
	b := f.envelope(event.KindMessage, threadKey(3), "C1/3")
	b.Claim = true
	theirs := other.accept(b)
	same(f, "claimed by the other", theirs.Fence != 0, true)
	c := f.envelope(event.KindMessage, threadKey(3), "C1/4")
	c.Claim = true
	same(f, "taken from the other", f.accept(c).Fence, 0)
	f.clock.advance(time.Minute)
	d := f.envelope(event.KindMessage, threadKey(3), "C1/5")
	d.Claim = true
	same(f, "taken after its lease", f.accept(d).Fence, theirs.Fence+1)
}

func claimsCounted(f *fixture) {
	custody := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	for i, node := range []string{"a", "b", "c"} {
		p := f.successor(node)
		p.claim(custody.Thread)
		same(f, "claims", p.next(custody.Thread)[0].Claims, int64(i+1))
	}
	last := f.successor("d")
	lease := last.claim(custody.Thread)
	f.must(last.Postpone(f.ctx, lease, custody.ID, f.clock.Now().Add(time.Second), nil))
	f.clock.advance(time.Second)
	pending := last.next(custody.Thread)[0]
	same(f, "claims after an orderly end", pending.Claims, 3)
	same(f, "attempts after waiting for something known", pending.Attempts, 0)
	f.must(last.Postpone(f.ctx, lease, custody.ID, f.clock.Now(), errors.New("no such user")))
	same(f, "attempts after a failure", last.next(custody.Thread)[0].Attempts, 1)
}

func envelopeOrder(f *fixture) {
	var ids []int64
	var thread int64
	for range 5 {
		custody := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
		ids, thread = append(ids, custody.ID), custody.Thread
	}
	got := func() []int64 {
		var out []int64
		for _, p := range f.next(thread) {
			out = append(out, p.ID)
		}
		return out
	}
	same(f, "order", got(), ids)
	until := f.clock.Now().Add(time.Second)
	f.must(f.Postpone(f.ctx, f.claim(thread), ids[0], until, errors.New("not now")))
	same(f, "behind one that waits", got(), nil)
	same(f, "due", f.due(journal.Intake), nil)
	at, err := f.NextDue(f.ctx, journal.Intake, "")
	f.must(err)
	same(f, "next due", at, until.UnixMilli())
	f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/2"))
	same(f, "due after a further envelope", f.due(journal.Intake), nil)
	f.clock.advance(time.Second)
	same(f, "due", f.due(journal.Intake), []int64{thread})
	same(f, "first", got()[:5], ids)
}

func buried(f *fixture) {
	first := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	second := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/2"))
	f.must(f.Bury(f.ctx, f.claim(first.Thread), first.ID, errors.New("text: must be a string")))
	settled, err := f.Envelope(f.ctx, first.ID)
	f.must(err)
	same(f, "fate", settled.Fate, event.Fate{Disposition: event.Dead, Error: "text: must be a string"})
	same(f, "body is kept", len(f.body(first.ID)) > 0, true)
	same(f, "next", f.next(first.Thread)[0].ID, second.ID)
	outcome := f.record(first.Thread, second.ID, event.Event{Kind: event.KindMessage, Message: said("C1/2", "hi")}, passive)
	same(f, "thread_seq", outcome.Message.Seq, 1)
	same(f, "due", f.due(journal.Intake), nil)
}

func settledOnce(f *fixture) {
	custody := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	lease := f.claim(custody.Thread)
	e := entry(custody.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, runs)
	f.record(custody.Thread, custody.ID, e.Event, runs)
	_, err := f.Record(f.ctx, lease, e)
	f.fails("record again", err, journal.ErrSettled)
	f.fails("postpone", f.Postpone(f.ctx, lease, custody.ID, f.clock.Now(), nil), journal.ErrSettled)
	f.fails("bury", f.Bury(f.ctx, lease, custody.ID, errors.New("no")), journal.ErrSettled)
	settled, err := f.Envelope(f.ctx, custody.ID)
	f.must(err)
	same(f, "fate", settled.Fate, event.Fate{Disposition: event.Stored, Reason: event.ReasonMention})
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi"})
}

func twinMeanwhile(f *fixture) {
	twin := f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/1"))
	thread := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/2")).Thread
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	a.Keys.Twin = "twin"
	var custody journal.Custody
	f.beside(func(tx journal.Tx) error {
		_, err := tx.Exec(`UPDATE threads SET next_seq = next_seq WHERE id = ?`, thread)
		return err
	}, func(tx journal.Tx) error { // as if the twin had been accepted just now
		_, err := tx.Exec(`UPDATE envelopes SET dedupe_key = 'twin' WHERE id = ?`, twin.ID)
		return err
	}, func() (err error) {
		custody, err = f.Accept(f.ctx, a)
		return err
	})
	same(f, "duplicate", custody.Duplicate, false)
	same(f, "stored", f.count("envelopes"), 3)
	same(f, "counted", f.count("envelopes e JOIN threads t ON t.id = e.thread WHERE t.pending <> (SELECT count(*) FROM envelopes WHERE thread = t.id)"), 0)
}
