package journaltest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

func waitingPromises() []promise {
	return []promise{
		{"what comes before its message waits, and is let in by it", admittedByRecord},
		{"what comes before our post is known is let in by its delivery", admittedBySent},
		{"what waits is looked up again", admittedByReview},
		{"who looks up what waits goes on beside who works on its thread", reviewBeside},
		{"what waits is let in once, whoever looks it up at once", reviewAtOnce},
		{"what waits in vain ends as unknown-message", waitsInVain},
		{"an edit in its thread is put aside until its message comes", putAside},
		{"what names no subject is let in by nobody", noSubject},
		{"who waits to know who we are is due once that is known", waitsForSelf},
		{"who tells what is known already waits for nobody", selfAgain},
		{"what waits to know who we are becomes due beside who works on its thread", selfBeside},
	}
}

func admittedByRecord(f *fixture) {
	reaction := f.accept(f.envelope(event.KindReaction, "", "C1/1"))
	same(f, "thread", reaction.Thread, 0)
	other := f.accept(f.envelope(event.KindReaction, "", "C1/2"))

	outcome := f.message(threadKey(1), said("C1/1", "hi"), passive)
	same(f, "pending", outcome.Pending, 1)
	thread := f.thread(threadKey(1))
	same(f, "let in", f.next(thread)[0].ID, reaction.ID)
	settled, err := f.Envelope(f.ctx, other.ID)
	f.must(err)
	same(f, "the other one's end", settled, nil)

	outcome = f.record(thread, reaction.ID, thumbsUp("C1/1"), nil)
	same(f, "fate", outcome.Disposition, event.Updated)
}

func admittedBySent(f *fixture) {
	reaction := f.accept(f.envelope(event.KindReaction, "", "C1/9"))
	f.exchange(threadKey(1), "C1/1", "hi", "Hello.", "Hello.")
	f.deliver(threadKey(1), "C1/9")
	thread := f.thread(threadKey(1))
	same(f, "due", f.due(journal.Intake), []int64{thread})
	outcome := f.record(thread, reaction.ID, thumbsUp("C1/9"), nil)
	same(f, "fate", outcome.Disposition, event.Updated)
	same(f, "message", outcome.Message.Content, "Hello.")
	same(f, "pending", outcome.Pending, 0)
}

func admittedByReview(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	thread, waits := f.thread(threadKey(1)), f.aside("C1/1")

	review, err := f.ReviewWaiting(f.ctx, f.clock.Now())
	f.must(err)
	same(f, "review", review, journal.Review{Threads: []int64{thread}})
	same(f, "due", f.due(journal.Intake), []int64{thread})
	same(f, "pending", f.record(thread, waits, thumbsUp("C1/1"), nil).Pending, 0)
}

// aside is a reaction that waits, though its message is there: as if that had been
// recorded between the look and the wait.
func (f *fixture) aside(id string) int64 {
	f.Helper()
	custody := f.accept(f.envelope(event.KindReaction, "", id))
	f.exec(`UPDATE envelopes SET thread = NULL WHERE id = ?`, custody.ID)
	f.exec(`UPDATE threads SET pending = 0, intake_at = NULL`)
	return custody.ID
}

func reviewBeside(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	thread, waits := f.thread(threadKey(1)), f.aside("C1/1")
	f.besideWork(thread, waits, func() error {
		_, err := f.ReviewWaiting(f.ctx, f.clock.Now())
		return err
	})
	same(f, "pending", f.record(thread, waits, thumbsUp("C1/1"), nil).Pending, 0)
}

// besideWork makes a call that concerns an envelope while another node works on its
// thread: as all work does, that locks the thread first. The call has nothing locked
// that the work then needs.
func (f *fixture) besideWork(thread, envelope int64, call func() error) {
	f.Helper()
	var free bool
	f.beside(func(tx journal.Tx) error {
		_, err := tx.Exec(`UPDATE threads SET next_seq = next_seq WHERE id = ?`, thread)
		return err
	}, func(tx journal.Tx) (err error) {
		free, err = tx.Row([]any{new(int64)}, `SELECT id FROM envelopes WHERE id = ? FOR UPDATE SKIP LOCKED`, envelope)
		return err
	}, call)
	same(f, "the envelope is free", free, true)
}

func reviewAtOnce(f *fixture) {
	const envelopes, nodes = 20, 4
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	thread := f.thread(threadKey(1))
	for range envelopes {
		f.aside("C1/1")
	}
	in, errs := make([]int, nodes), make([]error, nodes)
	var reviewing sync.WaitGroup
	for i := range nodes {
		node := f.node(fmt.Sprint("node", i))
		reviewing.Go(func() {
			var review journal.Review
			review, errs[i] = node.ReviewWaiting(f.ctx, f.clock.Now())
			in[i] = len(review.Threads)
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

func waitsInVain(f *fixture) {
	custody := f.accept(f.envelope(event.KindReaction, "", "C1/1"))
	deadline := func() time.Time { return f.clock.Now().Add(-journal.WaitLimit) }
	review, err := f.ReviewWaiting(f.ctx, deadline())
	f.must(err)
	same(f, "review at once", review, journal.Review{})
	f.clock.advance(journal.WaitLimit)
	review, err = f.ReviewWaiting(f.ctx, deadline())
	f.must(err)
	fate := event.Fate{Disposition: event.Ignored, Reason: event.ReasonUnknownMessage}
	same(f, "review", review.Ended, []journal.Settled{{Fate: fate, Envelope: custody.ID, Workspace: workspace, Kind: event.KindReaction}})
	settled, err := f.Envelope(f.ctx, custody.ID)
	f.must(err)
	same(f, "fate", settled.Fate, fate)

	same(f, "pending of a message that comes later", f.message(threadKey(1), said("C1/1", "hi"), passive).Pending, 0)
}

func putAside(f *fixture) {
	custody := f.accept(f.envelope(event.KindEdit, threadKey(1), "C1/1"))
	outcome := f.record(custody.Thread, custody.ID, edited("C1/1", "new", "2"), passive)
	same(f, "waits", outcome.Waits, true)
	same(f, "pending", outcome.Pending, 0)
	outcome = f.message(threadKey(1), said("C1/1", "old"), passive)
	same(f, "pending", outcome.Pending, 1)
	f.record(custody.Thread, custody.ID, edited("C1/1", "new", "2"), passive)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 new"})

	late := f.accept(f.envelope(event.KindEdit, threadKey(1), "C1/2"))
	f.clock.advance(journal.WaitLimit)
	outcome = f.record(late.Thread, late.ID, edited("C1/2", "new", "2"), passive)
	same(f, "one that has waited long enough", outcome.Fate, *event.Ignore(event.ReasonUnknownMessage))
}

func noSubject(f *fixture) {
	custody := f.accept(f.envelope(event.KindOther, "", ""))
	f.exchange(threadKey(1), "C1/1", "hi", "Hello.", "Hello.")
	f.deliver(threadKey(1), "")
	settled, err := f.Envelope(f.ctx, custody.ID)
	f.must(err)
	same(f, "end", settled, nil)
	same(f, "due", f.due(journal.Intake), nil)
}

func waitsForSelf(f *fixture) {
	custody := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	lease := f.claim(custody.Thread)
	f.must(f.Postpone(f.ctx, lease, custody.ID, f.clock.Now().Add(time.Minute), nil))
	same(f, "due", f.due(journal.Intake), nil)
	f.must(f.SetSelf(f.ctx, "other", event.Self{UserID: "B"}))
	same(f, "due when somebody else is known", f.due(journal.Intake), nil)
	f.must(f.SetSelf(f.ctx, workspace, event.Self{UserID: "B"}))
	same(f, "due", f.due(journal.Intake), []int64{custody.Thread})
	same(f, "next", len(f.next(custody.Thread)), 1)
}

func selfAgain(f *fixture) {
	self := event.Self{UserID: "B"}
	f.must(f.SetSelf(f.ctx, workspace, self))
	waited := f.beside(func(tx journal.Tx) error {
		_, err := tx.Exec(`UPDATE workspaces SET self = self`)
		return err
	}, func(journal.Tx) error { return nil }, func() error { return f.SetSelf(f.ctx, workspace, self) })
	same(f, "waits", waited && f.onShared(), false)
}

func selfBeside(f *fixture) {
	var last journal.Custody
	for i := range 3 {
		last = f.accept(f.envelope(event.KindMessage, threadKey(i), fmt.Sprint("C1/", i)))
		f.must(f.Postpone(f.ctx, f.claim(last.Thread), last.ID, f.clock.Now().Add(time.Minute), nil))
	}
	f.besideWork(last.Thread, last.ID, func() error {
		return f.SetSelf(f.ctx, workspace, event.Self{UserID: "B"})
	})
	same(f, "due", len(f.due(journal.Intake)), 3)
	same(f, "next", len(f.next(last.Thread)), 1)
}
