package journaltest

import (
	"errors"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

func acceptPromises() []promise {
	return []promise{
		{"a key is accepted once", keyOnce},
		{"concurrent accepts of one key make one envelope", keyOnceConcurrently},
		{"a second payload of a message follows the first one's thread", secondPayloadFollows},
		{"an action on a post of ours goes to the post's thread", holderFollows},
		{"an envelope without further work is settled at once", settledAtOnce},
		{"an event of kind other is settled and changes no message", otherRecorded},
		{"an envelope about a message goes to the message's thread", targetsThread},
		{"raw bytes are returned exactly", rawBytes},
		{"accept claims a free thread", claimOnAccept},
		{"envelopes are due in the order of their accept, none before an earlier one that waits", envelopeOrder},
		{"a thread continues after a dead letter", buried},
		{"an envelope is settled once", settledOnce},
		{"only a pending envelope of the thread is recorded", recordedWherePending},
		{"a payload is stored even if the other payload of its message is accepted meanwhile in another thread", secondPayloadMeanwhile},
	}
}

func keyOnce(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	first := f.accept(a)
	a.Envelope.Body = []byte("the same message, sent again")
	second := f.accept(a)
	same(f, "second", second, envelopes.AcceptResult{ID: first.ID, MessageUUID: first.MessageUUID, Duplicate: true})

	a.Envelope.Workspace = "other"
	a.Keys.Thread = "slack:other:C1:1"
	same(f, "duplicate in another workspace", f.accept(a).Duplicate, false)
	same(f, "envelopes", f.count("envelopes"), 2)
}

func keyOnceConcurrently(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	const callers = 32
	accepts, errs := make([]envelopes.AcceptResult, callers), make([]error, callers)
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() { accepts[i], errs[i] = f.Envelopes.Accept(f.ctx, a) })
	}
	wait.Wait()
	f.must(errors.Join(errs...))
	first := 0
	for _, c := range accepts {
		same(f, "id", c.ID, accepts[0].ID)
		if !c.Duplicate {
			first++
		}
	}
	same(f, "accepts that were not duplicates", first, 1)
	m := said("C1/1", "hi")
	result := f.record(f.thread(threadKey(1)), accepts[0].ID, event.Event{Kind: event.KindMessage, Message: m}, triggers)
	same(f, "pending afterwards", result.Pending, 0)
}

func secondPayloadFollows(f *fixture) {
	first := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	second := f.envelope(event.KindMessage, threadKey(2), "C1/1")
	second.Keys.AltKey = first.Keys.Dedupe
	same(f, "threads", f.accept(second).Thread == f.accept(first).Thread, false)

	third := f.envelope(event.KindMessage, threadKey(3), "C1/1")
	third.Keys.AltKey = first.Keys.Dedupe
	same(f, "thread of the third payload", f.accept(third).Thread, f.thread(threadKey(1)))
	same(f, "threads", f.count("threads"), 2)
}

func holderFollows(f *fixture) {
	f.exchange(threadKey(2), "C1/1", "hi", "May I?", "May I?")
	f.deliver(threadKey(2), "C1/9")
	f.message(threadKey(2), said("C1/2", "hum"), passive)
	for holder, want := range map[string]event.ThreadKey{"C1/9": threadKey(2), "C1/2": threadKey(1), "C1/none": threadKey(1)} {
		a := f.envelope(event.KindAction, threadKey(1), "C1/action-"+holder)
		a.Keys.PostID = holder
		accepted := f.accept(a)
		same(f, holder, accepted.Thread, f.thread(want))
		again := f.accept(a)
		same(f, "again", []any{again.ID, again.Duplicate}, []any{accepted.ID, true})
		m := said("C1/action-"+holder, "Yes")
		f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindAction, Message: m}, passive)
	}
	same(f, "its thread", f.lines(threadKey(2)), []string{"1 hi", "2 May I?", "3 hum", "4 Yes"})
}

// otherRecorded covers the events that change the adapter's state alone.
func otherRecorded(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	accepted := f.accept(f.envelope(event.KindOther, threadKey(1), ""))
	result := f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindOther}, passive)
	same(f, "result", result.Result, event.Result{Disposition: event.Updated})
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi"})
	accepted = f.accept(f.envelope(event.KindOther, threadKey(2), ""))
	result = f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindOther, Ignored: event.ReasonNoChange}, passive)
	same(f, "ignored", result.Result, *event.Ignore(event.ReasonNoChange))
}

func settledAtOnce(f *fixture) {
	for _, result := range []*event.Result{
		event.Ignore(event.ReasonOtherWorkspace), event.Refuse(errors.New("ts: must be a string")),
	} {
		a := f.envelope(event.KindOther, threadKey(1), "")
		a.Keys.Result = result
		accepted := f.accept(a)
		same(f, "result", accepted, envelopes.AcceptResult{ID: accepted.ID, Result: result})
		settled, err := f.Envelopes.Envelope(f.ctx, accepted.ID)
		f.must(err)
		same(f, "settled", settled.Result, *result)
	}
	same(f, "threads", f.count("threads"), 0)
	backlog, err := f.Envelopes.Backlog(f.ctx)
	f.must(err)
	same(f, "backlog", backlog, envelopes.Backlog{DeadLetters: 1})
}

func targetsThread(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	same(f, "thread", f.accept(f.envelope(event.KindReaction, "", "C1/1")).Thread, f.thread(threadKey(1)))
	f.exchange(threadKey(3), "C1/4", "hello", "No?", "No?")
	f.deliver(threadKey(3), "C1/5")
	f.exchange(threadKey(2), "C1/2", "hello", "Yes?", "Yes?")
	f.deliver(threadKey(2), "C1/3")
	ours := f.envelope(event.KindReaction, "", "C1/3")
	first := f.accept(ours)
	same(f, "thread of a post of ours", first.Thread, f.thread(threadKey(2)))
	again := f.accept(ours)
	same(f, "again", []any{again.ID, again.Duplicate}, []any{first.ID, true})
	result := f.record(first.Thread, first.ID, thumbsUp("C1/3"), passive)
	same(f, "pending afterwards", result.Pending, 0)
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
	_, err := f.Recorder.Record(f.ctx, &threads.Claim{Thread: mine.Thread, Fence: mine.Fence},
		entry(mine.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, triggers))
	f.must(err)

	free := f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/2"))
	same(f, "claim that was not requested", free.Fence, 0)

	a1, b1 := pair(f)
	theirs := a1.claimed(threadKey(3), "C1/3")
	same(f, "claimed by the first node", theirs.Fence != 0, true)
	same(f, "claimed by the second node", b1.claimed(threadKey(3), "C1/4").Fence, int64(0))
	f.clock.advance(50 * time.Second)
	extended := a1.claimed(threadKey(3), "C1/5")
	same(f, "extended under the same fence", extended.Fence, theirs.Fence)
	same(f, "from", extended.At, f.clock.Now())
	f.clock.advance(-20 * time.Second)
	a1.claimed(threadKey(3), "C1/5, which reaches the store late")
	f.clock.advance(20 * time.Second)
	f.clock.advance(50 * time.Second)
	same(f, "owner before the extended end", b1.claimed(threadKey(3), "C1/6").Owner, "a")
	f.clock.advance(10 * time.Second)
	left := b1.claimed(threadKey(3), "C1/7")
	same(f, "no claim, because envelopes are pending", [2]any{left.Fence, left.Owner}, [2]any{int64(0), ""})
	f.exec(`UPDATE threads SET pending = 0`)
	same(f, "claimed after the lease", b1.claimed(threadKey(3), "C1/8").Fence, theirs.Fence+1)
	f.exec(`UPDATE threads SET pending = 0`)
	f.clock.advance(-time.Hour)
	same(f, "claimed by the only process after the clock went back", f.claimed(threadKey(3), "C1/9").Fence, theirs.Fence+2)
}

// claimed accepts a message and requests the claim of its thread.
func (f *fixture) claimed(thread event.ThreadKey, id string) envelopes.AcceptResult {
	f.Helper()
	a := f.envelope(event.KindMessage, thread, id)
	a.Claim = true
	a.Keys.Dedupe = id
	return f.accept(a)
}

func envelopeOrder(f *fixture) {
	var ids []int64
	var thread int64
	for range 5 {
		accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
		ids, thread = append(ids, accepted.ID), accepted.Thread
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
	f.must(f.Envelopes.Postpone(f.ctx, f.claim(thread), ids[0], until, errors.New("not now")))
	same(f, "after one that waits", got(), nil)
	same(f, "due", f.due(intake), nil)
	f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/2"))
	same(f, "due after a further envelope", f.due(intake), nil)
	f.clock.advance(time.Second)
	same(f, "due", f.due(intake), []int64{thread})
	same(f, "first", got()[:5], ids)
}

func buried(f *fixture) {
	first := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	second := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/2"))
	f.must(f.Envelopes.Bury(f.ctx, f.claim(first.Thread), first.ID, errors.New("text: must be a string")))
	settled, err := f.Envelopes.Envelope(f.ctx, first.ID)
	f.must(err)
	same(f, "result", settled.Result, event.Result{Disposition: event.Dead, Error: "text: must be a string"})
	same(f, "the body is stored", len(f.body(first.ID)) > 0, true)
	same(f, "next", f.next(first.Thread)[0].ID, second.ID)
	result := f.record(first.Thread, second.ID, event.Event{Kind: event.KindMessage, Message: said("C1/2", "hi")}, passive)
	same(f, "thread_seq", result.Message.Seq, 1)
	same(f, "due", f.due(intake), nil)
}

func settledOnce(f *fixture) {
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	lease := f.claim(accepted.Thread)
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, triggers)
	f.record(accepted.Thread, accepted.ID, e.Event, triggers)
	_, err := f.Recorder.Record(f.ctx, lease, e)
	f.fails("record again", err, envelopes.ErrSettled)
	for kind, e := range map[event.Kind]event.Event{
		event.KindMessage: {Kind: event.KindMessage, Message: said("C1/2", "hi")},
		event.KindEdit:    edited("C1/3", "hi", "2"),
	} {
		ended := f.accept(f.envelope(kind, threadKey(1), "C1/2"))
		f.record(ended.Thread, ended.ID, event.Event{Kind: kind, Ignored: event.ReasonNoChange}, nil)
		_, err = f.Recorder.Record(f.ctx, lease, entry(ended.ID, e, triggers))
		f.fails("record an ignored "+string(kind), err, envelopes.ErrSettled)
	}
	f.fails("postpone", f.Envelopes.Postpone(f.ctx, lease, accepted.ID, f.clock.Now(), nil), envelopes.ErrSettled)
	f.fails("bury", f.Envelopes.Bury(f.ctx, lease, accepted.ID, errors.New("no")), envelopes.ErrSettled)
	settled, err := f.Envelopes.Envelope(f.ctx, accepted.ID)
	f.must(err)
	same(f, "result", settled.Result, event.Result{Disposition: event.Stored, Reason: event.ReasonMention})
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi"})
}

func recordedWherePending(f *fixture) {
	dead := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	f.must(f.Envelopes.Bury(f.ctx, f.claim(dead.Thread), dead.ID, errors.New("text: must be a string")))
	elsewhere := f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/1"))
	before := f.dump()
	for what, e := range map[string]event.Event{
		"message": {Kind: event.KindMessage, Message: said("C1/1", "hi")},
		"edit":    edited("C1/2", "new", "2"), // of an unknown message
	} {
		for _, envelope := range []int64{dead.ID, elsewhere.ID} {
			_, err := f.Recorder.Record(f.ctx, f.claim(dead.Thread), entry(envelope, e, triggers))
			f.fails(what, err, envelopes.ErrSettled)
		}
	}
	same(f, "rows", f.dump(), before)
}

func secondPayloadMeanwhile(f *fixture) {
	second := f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/1"))
	thread := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/2")).Thread
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	a.Keys.AltKey = "second"
	var accepted envelopes.AcceptResult
	f.beside(func(tx storage.Tx) error {
		_, err := tx.Exec(`UPDATE threads SET next_seq = next_seq WHERE id = $1`, thread)
		return err
	}, func(tx storage.Tx) error { // as if the other payload had just been accepted
		_, err := tx.Exec(`UPDATE envelopes SET dedupe_key = 'second' WHERE id = $1`, second.ID)
		return err
	}, func() (err error) {
		accepted, err = f.Envelopes.Accept(f.ctx, a)
		return err
	})
	same(f, "duplicate", accepted.Duplicate, false)
	same(f, "stored", f.count("envelopes"), 3)
	same(f, "counted", f.count("envelopes e JOIN threads t ON t.id = e.thread WHERE t.pending <> (SELECT count(*) FROM envelopes WHERE thread = t.id)"), 0)
}
