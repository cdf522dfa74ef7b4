package journaltest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/storage"
)

func waitingPromises() []promise {
	return []promise{
		{"an envelope that arrives before its message waits until the message is recorded", admittedByRecord},
		{"an envelope about an unknown post of ours waits until a review after the delivery was sent", admittedBySent},
		{"a review moves only the envelopes that wait for a sent post", awaitedPost},
		{"a review moves waiting envelopes to their threads", admittedByReview},
		{"a review does not wait for a node that works on the thread", reviewBeside},
		{"a review reaches a waiting envelope behind many that are pending in their threads", reviewBehindMany},
		{"an envelope that moved to another thread cannot be changed in the thread before", movedAway},
		{"concurrent reviews move an envelope once", reviewAtOnce},
		{"concurrent reviews end an envelope once", endedAtOnce},
		{"an envelope whose message never arrives ends as unknown-message", waitsInVain},
		{"no envelope ends while a gap of its channel is open", waitsForGap},
		{"no envelope ends before its message's own envelope", waitsForEnvelope},
		{"an edit with a thread waits there until its message arrives", editWaits},
		{"an envelope without a target never leaves its wait", noSubject},
		{"an envelope that waits for our identity is due when the identity is known", waitsForSelf},
		{"a thread without pending envelopes is not due when the identity is known", selfAfterSettled},
		{"a store of a known identity waits for no lock", selfAgain},
		{"envelopes that wait for our identity become due while a node works on their thread", selfBeside},
	}
}

func admittedByRecord(f *fixture) {
	reaction := f.accept(f.envelope(event.KindReaction, "", "C1/1"))
	same(f, "thread", reaction.Thread, 0)
	other := f.accept(f.envelope(event.KindReaction, "", "C1/2"))

	result := f.message(threadKey(1), said("C1/1", "hi"), passive)
	same(f, "pending", result.Pending, 1)
	thread := f.thread(threadKey(1))
	same(f, "let in", f.next(thread)[0].ID, reaction.ID)
	settled, err := f.Envelopes.Envelope(f.ctx, other.ID)
	f.must(err)
	same(f, "result of the other envelope", settled, nil)

	result = f.record(thread, reaction.ID, thumbsUp("C1/1"), nil)
	same(f, "result", result.Disposition, event.Updated)
}

func admittedBySent(f *fixture) {
	reaction := f.accept(f.envelope(event.KindReaction, "", "C1/9"))
	f.exchange(threadKey(1), "C1/1", "hi", "Hello.", "Hello.")
	f.deliver(threadKey(1), "C1/9")
	thread := f.thread(threadKey(1))
	same(f, "review", f.review(), review{Moved: []int64{thread}})
	same(f, "due", f.due(intake), []int64{thread})
	result := f.record(thread, reaction.ID, thumbsUp("C1/9"), nil)
	same(f, "result", result.Disposition, event.Updated)
	same(f, "message", result.Message.Content, "Hello.")
	same(f, "pending", result.Pending, 0)
}

func awaitedPost(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "hi", "Hello.", "Hello.", "Bye.")
	f.accept(f.envelope(event.KindReaction, "", "C1/8"))
	f.clock.advance(envelopes.WaitLimit)
	same(f, "ended without its post", len(f.review().Ended), 1)
	f.accept(f.envelope(event.KindReaction, "", "C1/9"))
	f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/8"))
	elsewhere := f.envelope(event.KindReaction, "", "C1/8")
	elsewhere.Envelope.Workspace = "other"
	f.accept(elsewhere)
	f.deliver(threadKey(1), "C1/8")
	same(f, "without an envelope", f.review(), review{})
	f.deliver(threadKey(1), "C1/9")
	same(f, "with an envelope", f.review(), review{Moved: []int64{f.thread(threadKey(1))}})
}

func admittedByReview(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	thread, waits := f.thread(threadKey(1)), f.waiting("C1/1")

	same(f, "review", f.reviewAt(f.clock.Now()), review{Moved: []int64{thread}})
	same(f, "due", f.due(intake), []int64{thread})
	same(f, "pending", f.record(thread, waits, thumbsUp("C1/1"), nil).Pending, 0)
}

// waiting returns a waiting reaction to a recorded message, as if the message had been
// recorded between the lookup and the wait.
func (f *fixture) waiting(id string) int64 {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindReaction, "", id))
	f.exec(`UPDATE envelopes SET thread = NULL WHERE id = $1`, accepted.ID)
	f.exec(`UPDATE threads SET pending = 0, intake_at = NULL`)
	return accepted.ID
}

func reviewBeside(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	thread, waits := f.thread(threadKey(1)), f.waiting("C1/1")
	f.besideWork(thread, waits, func() error {
		_, err := f.tryReview(f.clock.Now())
		return err
	})
	same(f, "pending", f.record(thread, waits, thumbsUp("C1/1"), nil).Pending, 0)
}

// besideWork makes a call that concerns an envelope while another node works on its
// thread: like all work, that work locks the thread first. The call must not hold a lock
// that the work then needs.
func (f *fixture) besideWork(thread, envelope int64, call func() error) {
	f.Helper()
	var free bool
	f.beside(func(tx storage.Tx) error {
		_, err := tx.Exec(`UPDATE threads SET next_seq = next_seq WHERE id = $1`, thread)
		return err
	}, func(tx storage.Tx) (err error) {
		free, err = tx.Row([]any{new(int64)}, `SELECT id FROM envelopes WHERE id = $1 FOR UPDATE SKIP LOCKED`, envelope)
		return err
	}, call)
	same(f, "the envelope is not locked", free, true)
}

func reviewBehindMany(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	thread := f.thread(threadKey(1))
	f.exec(`INSERT INTO envelopes (workspace, platform, transport, dedupe_key, kind, thread, message_id, received_at, accepted_at, state, message_uuid, body)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
		SELECT workspace, platform, transport, CAST(i AS TEXT), 'reaction', thread, message_id, 1, 1, 'pending', 'x', body FROM n, envelopes`)
	f.waiting("C1/1")
	same(f, "review", f.reviewAt(f.clock.Now()), review{Moved: []int64{thread}})
}

func movedAway(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	moved := f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/1"))
	f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/2"))
	second := event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}
	same(f, "waits", f.record(moved.Thread, moved.ID, second, triggers).Waits, true)
	claim, before, cause := f.claim(moved.Thread), f.dump(), errors.New("cause")
	f.fails("Postpone", f.Envelopes.Postpone(f.ctx, claim, moved.ID, f.clock.Now().Add(time.Second), cause), envelopes.ErrSettled)
	f.fails("CountSuspect", f.Envelopes.CountSuspect(f.ctx, claim, moved.ID, 1), envelopes.ErrSettled)
	f.fails("Bury", f.Envelopes.Bury(f.ctx, claim, moved.ID, cause), envelopes.ErrSettled)
	same(f, "rows", f.dump(), before)
}

func reviewAtOnce(f *fixture) {
	const envelopes, nodes = 20, 4
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	thread := f.thread(threadKey(1))
	for range envelopes {
		f.waiting("C1/1")
	}
	in, errs := make([]int, nodes), make([]error, nodes)
	var reviewing sync.WaitGroup
	for i := range nodes {
		node := f.node(fmt.Sprint("node", i))
		reviewing.Go(func() {
			var r review
			r, errs[i] = node.tryReview(f.clock.Now())
			in[i] = len(r.Moved)
		})
	}
	reviewing.Wait()
	f.must(errors.Join(errs...))
	sum := 0
	for _, n := range in {
		sum += n
	}
	same(f, "let in", sum, envelopes)
	for i, p := range f.next(thread) {
		same(f, "pending", f.record(thread, p.ID, thumbsUp("C1/1"), nil).Pending, int64(envelopes-i-1))
	}
}

// endedAtOnce ends the envelopes of a review by another review, after the first of them.
func endedAtOnce(f *fixture) {
	for range 3 {
		f.accept(f.envelope(event.KindReaction, "", "C1/1"))
	}
	f.clock.advance(envelopes.WaitLimit)
	ended, rest := 0, review{}
	f.must(f.Envelopes.ReviewWaiting(f.ctx, f.clock.Now().Add(-envelopes.WaitLimit), func(int64) {}, func(envelopes.Result) {
		if ended++; ended == 1 {
			rest = f.node("second").review()
		}
	}))
	same(f, "ended by each review", []int{ended, len(rest.Ended)}, []int{1, 2})
}

func waitsInVain(f *fixture) {
	f.exchange(threadKey(2), "C1/8", "another message", "Hello.", "another post")
	f.deliver(threadKey(2), "C1/9")
	accepted := f.accept(f.envelope(event.KindReaction, "", "C1/1"))
	deadline := func() time.Time { return f.clock.Now().Add(-envelopes.WaitLimit) }
	same(f, "review at once", f.reviewAt(deadline()), review{})
	f.clock.advance(envelopes.WaitLimit)
	result := event.Result{Disposition: event.Ignored, Reason: event.ReasonUnknownMessage}
	same(f, "review", f.reviewAt(deadline()).Ended, []envelopes.Result{{Result: result, Envelope: accepted.ID, Workspace: workspace, Kind: event.KindReaction}})
	settled, err := f.Envelopes.Envelope(f.ctx, accepted.ID)
	f.must(err)
	same(f, "result", settled.Result, result)

	same(f, "pending envelopes of the later message", f.message(threadKey(1), said("C1/1", "hi"), passive).Pending, 0)
}

// review is the reports of one ReviewWaiting.
type review struct {
	Moved []int64 // threads
	Ended []envelopes.Result
}

func (f *fixture) tryReview(deadline time.Time) (r review, err error) {
	err = f.Envelopes.ReviewWaiting(f.ctx, deadline, func(thread int64) { r.Moved = append(r.Moved, thread) },
		func(s envelopes.Result) { r.Ended = append(r.Ended, s) })
	return r, err
}

func (f *fixture) reviewAt(deadline time.Time) review {
	f.Helper()
	r, err := f.tryReview(deadline)
	f.must(err)
	return r
}

// review ends the envelopes that have waited for a minute.
func (f *fixture) review() review {
	f.Helper()
	return f.reviewAt(f.clock.Now().Add(-envelopes.WaitLimit))
}

func waitsForGap(f *fixture) {
	accepted := f.accept(f.envelope(event.KindDelete, "", "C1/1"))
	named := f.accept(f.envelope(event.KindEdit, threadKey(1), "C1/2")) // the envelope names a thread, as on Discord
	f.opens(between("C1", 1, 2), between("C2", 1, 2))
	f.clock.advance(5 * time.Minute)
	same(f, "waits", f.record(named.Thread, named.ID, edited("C1/2", "new", "2"), passive).Waits, true)
	same(f, "during the gap", f.review(), review{})
	f.must(f.Threads.CloseGap(f.ctx, workspace, between("C1", 1, 2), 0))
	var ended []int64
	for _, s := range f.review().Ended {
		ended = append(ended, s.Envelope)
	}
	same(f, "after the gap", ended, []int64{accepted.ID, named.ID})
}

func waitsForEnvelope(f *fixture) {
	message := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	waits := f.accept(f.envelope(event.KindDelete, "", "C1/1"))
	f.clock.advance(5 * time.Minute)
	same(f, "while its message is pending", f.review(), review{})
	same(f, "pending", f.record(message.Thread, message.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, passive).Pending, 1)
	same(f, "next", f.next(message.Thread)[0].ID, waits.ID)
	same(f, "afterwards", f.review(), review{})
}

func editWaits(f *fixture) {
	accepted := f.accept(f.envelope(event.KindEdit, threadKey(1), "C1/1"))
	result := f.record(accepted.Thread, accepted.ID, edited("C1/1", "new", "2"), passive)
	same(f, "waits", result.Waits, true)
	same(f, "pending", result.Pending, 0)
	result = f.message(threadKey(1), said("C1/1", "old"), passive)
	same(f, "pending", result.Pending, 1)
	f.record(accepted.Thread, accepted.ID, edited("C1/1", "new", "2"), passive)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 new"})

	late := f.accept(f.envelope(event.KindEdit, threadKey(1), "C1/2"))
	f.opens(between("C2", 1, 2))
	f.must(f.Threads.OpenGaps(f.ctx, "other", []event.Gap{between("C1", 1, 2)}, time.Time{}))
	f.clock.advance(envelopes.WaitLimit)
	result = f.record(late.Thread, late.ID, edited("C1/2", "new", "2"), passive)
	same(f, "an envelope at its deadline", result.Result, *event.Ignore(event.ReasonUnknownMessage))
}

func noSubject(f *fixture) {
	accepted := f.accept(f.envelope(event.KindOther, "", ""))
	f.exchange(threadKey(1), "C1/1", "hi", "Hello.", "Hello.")
	f.deliver(threadKey(1), "")
	settled, err := f.Envelopes.Envelope(f.ctx, accepted.ID)
	f.must(err)
	same(f, "end", settled, nil)
	same(f, "due", f.due(intake), nil)
}

func waitsForSelf(f *fixture) {
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	lease := f.claim(accepted.Thread)
	f.must(f.Envelopes.Postpone(f.ctx, lease, accepted.ID, f.clock.Now().Add(time.Minute), nil))
	same(f, "due", f.due(intake), nil)
	f.must(f.Envelopes.SetSelf(f.ctx, "other", event.Self{UserID: "B"}))
	same(f, "due after another workspace's identity", f.due(intake), nil)
	f.must(f.Envelopes.SetSelf(f.ctx, workspace, event.Self{UserID: "B"}))
	same(f, "due", f.due(intake), []int64{accepted.Thread})
	same(f, "next", len(f.next(accepted.Thread)), 1)
}

// selfAfterSettled settles an envelope after SetSelf has found its thread.
func selfAfterSettled(f *fixture) {
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	f.must(f.Envelopes.Postpone(f.ctx, f.claim(accepted.Thread), accepted.ID, f.clock.Now().Add(time.Minute), nil))
	writes := 0
	meanwhile := journal.New(&observed{Engine: f.engine, writes: func() {
		if writes++; writes == 2 { // the first one has stored the identity
			f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, passive)
		}
	}}, journal.Options{Now: f.clock.Now})
	f.must(meanwhile.Envelopes.SetSelf(f.ctx, workspace, event.Self{UserID: "B"}))
	same(f, "writes", writes, 2)
	same(f, "due", f.due(intake), nil)
}

func selfAgain(f *fixture) {
	self := event.Self{UserID: "B"}
	f.must(f.Envelopes.SetSelf(f.ctx, workspace, self))
	waited := f.beside(func(tx storage.Tx) error {
		_, err := tx.Exec(`UPDATE workspaces SET self = self`)
		return err
	}, func(storage.Tx) error { return nil }, func() error { return f.Envelopes.SetSelf(f.ctx, workspace, self) })
	same(f, "waits", waited && f.onShared(), false)
}

func selfBeside(f *fixture) {
	var last envelopes.AcceptResult
	for i := range 3 {
		last = f.accept(f.envelope(event.KindMessage, threadKey(i), fmt.Sprint("C1/", i)))
		f.must(f.Envelopes.Postpone(f.ctx, f.claim(last.Thread), last.ID, f.clock.Now().Add(time.Minute), nil))
	}
	f.besideWork(last.Thread, last.ID, func() error {
		return f.Envelopes.SetSelf(f.ctx, workspace, event.Self{UserID: "B"})
	})
	same(f, "due", len(f.due(intake)), 3)
	same(f, "next", len(f.next(last.Thread)), 1)
}
