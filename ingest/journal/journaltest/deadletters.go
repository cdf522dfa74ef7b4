package journaltest

import (
	"errors"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/storage"
)

func deadLetterPromises() []promise {
	return []promise{
		{"a resubmitted letter keeps its id, its dedupe key and the UUID of its message", resubmittedAsItWas},
		{"a resubmitted letter comes before the later payloads of its thread", resubmittedFirst},
		{"a letter without a thread gets the thread that its keys name", resubmittedUnread},
		{"a letter that waits for its message gets the message's thread", resubmittedTarget},
		{"a letter whose keys still cannot be read stays a dead letter", resubmittedInVain},
		{"a letter is resubmitted once", resubmittedOnce},
		{"the message of a letter that came again meanwhile is recorded once", resubmittedAfterRepetition},
		{"a letter whose message was deleted is not resubmitted", resubmittedAfterDelete},
		{"a discarded letter has no body, and its payload is still known", discarded},
		{"dead letters are listed newest first, in pages", deadLettersListed},
	}
}

var errUnreadable = errors.New("event.text: must be a string, not number")

// bury accepts a payload whose record fails, and returns its id.
func (f *fixture) bury(a envelopes.AcceptRequest) envelopes.AcceptResult {
	f.Helper()
	accepted := f.accept(a)
	f.must(f.Envelopes.Bury(f.ctx, f.claim(accepted.Thread), accepted.ID, errUnreadable))
	return accepted
}

// unread accepts a payload whose keys cannot be read.
func (f *fixture) unread() envelopes.AcceptResult {
	f.Helper()
	a := f.envelope(event.KindOther, "", "")
	a.Keys.Channel, a.Keys.Result = event.Channel{}, event.Refuse(errUnreadable)
	return f.accept(a)
}

// resubmit resubmits a letter whose keys are read again.
func (f *fixture) resubmit(id int64, keys event.Keys) envelopes.AcceptResult {
	f.Helper()
	letter, err := f.Envelopes.Letter(f.ctx, id)
	f.must(err)
	stored, err := f.Envelopes.Resubmit(f.ctx, letter, keys)
	f.must(err)
	return stored
}

// letter returns a dead letter as an operator sees it.
func (f *fixture) letter(id int64) listing.DeadLetter {
	f.Helper()
	d, err := f.Listing.DeadLetter(f.ctx, id)
	f.must(err)
	return d
}

func resubmittedAsItWas(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	dead := f.bury(a)
	d := f.letter(dead.ID)
	same(f, "listed", []any{d.Workspace, d.Thread, d.MessageID, d.Key, d.State, d.Error, d.ReceivedAt},
		[]any{workspace, threadKey(1), "C1/1", a.Keys.Dedupe, listing.LetterDead, errUnreadable.Error(), a.Envelope.ReceivedAt})
	same(f, "due before", f.due(intake), nil)

	same(f, "thread", f.resubmit(dead.ID, event.Keys{}).Thread, dead.Thread)
	same(f, "state", f.letter(dead.ID).State, listing.LetterResubmitted)
	same(f, "due", f.due(intake), []int64{dead.Thread})
	next := f.next(dead.Thread)[0]
	same(f, "next", []any{next.ID, next.MessageUUID, next.Attempts, string(next.Envelope.Body), next.Resubmitted.IsZero()},
		[]any{dead.ID, dead.MessageUUID, int64(0), string(a.Envelope.Body), false})
	result := f.record(dead.Thread, dead.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, triggers)
	same(f, "pending", result.Pending, 0)
	d = f.letter(dead.ID)
	same(f, "settled", []any{d.State, d.Disposition, d.Reason, d.Error}, []any{listing.LetterSettled, event.Stored, event.ReasonMention, ""})
	same(f, "sent again by the platform", f.accept(a), envelopes.AcceptResult{ID: dead.ID, MessageUUID: dead.MessageUUID, Duplicate: true})
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi"})
}

func resubmittedFirst(f *fixture) {
	dead := f.bury(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	later := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/2"))
	f.must(f.Envelopes.Postpone(f.ctx, f.claim(later.Thread), later.ID, f.clock.Now().Add(time.Second), errUnreadable))
	f.resubmit(dead.ID, event.Keys{})
	same(f, "next", f.next(dead.Thread)[0].ID, dead.ID)
	f.record(dead.Thread, dead.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, passive)
	same(f, "pending", f.record(dead.Thread, later.ID, event.Event{Kind: event.KindMessage, Message: said("C1/2", "ho")}, passive).Pending, 0)
}

func resubmittedUnread(f *fixture) {
	dead := f.unread()
	same(f, "thread before", f.letter(dead.ID).Thread, "")
	stored := f.resubmit(dead.ID, event.Keys{
		Kind: event.KindMessage, Dedupe: "message:C1/1", MessageID: "C1/1", Thread: threadKey(1), Channel: event.Channel{ID: channel, Type: event.ChannelDirect},
	})
	same(f, "due", f.due(intake), []int64{stored.Thread})
	f.record(stored.Thread, dead.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, passive)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi"})
	d := f.letter(dead.ID)
	same(f, "settled", []any{d.State, d.Kind, d.MessageID, d.Private}, []any{listing.LetterSettled, event.KindMessage, "C1/1", true})
}

func resubmittedTarget(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	known, waits := f.unread(), f.unread()
	edit := event.Keys{Kind: event.KindEdit, Dedupe: "edit:C1/1:2", MessageID: "C1/1", Channel: event.Channel{ID: channel}}
	same(f, "thread", f.resubmit(known.ID, edit).Thread, f.thread(threadKey(1)))
	edit.MessageID = "C1/9"
	same(f, "thread of an unknown message", f.resubmit(waits.ID, edit).Thread, 0)
	same(f, "state", f.letter(waits.ID).State, listing.LetterResubmitted)
}

func resubmittedInVain(f *fixture) {
	dead := f.unread()
	again := event.Refuse(errors.New("event.ts: is missing"))
	same(f, "result", f.resubmit(dead.ID, event.Keys{Kind: event.KindOther, Result: again}).Result, again)
	d := f.letter(dead.ID)
	same(f, "letter", []any{d.State, d.Error, d.ResubmittedAt.IsZero()}, []any{listing.LetterDead, "event.ts: is missing", false})
	same(f, "body", len(f.body(dead.ID)) > 0, true)

	f.resubmit(dead.ID, event.Keys{Kind: event.KindOther, Result: event.Ignore(event.ReasonNotAnEvent)})
	d = f.letter(dead.ID)
	same(f, "ignored", []any{d.State, d.Disposition, d.Reason, len(f.body(dead.ID))}, []any{listing.LetterSettled, event.Ignored, event.ReasonNotAnEvent, 0})
}

func resubmittedOnce(f *fixture) {
	for _, dead := range []envelopes.AcceptResult{f.bury(f.envelope(event.KindMessage, threadKey(1), "C1/1")), f.unread()} {
		letter, err := f.Envelopes.Letter(f.ctx, dead.ID)
		f.must(err)
		keys := event.Keys{Kind: event.KindMessage, MessageID: "C1/2", Thread: threadKey(1)}
		_, err = f.Envelopes.Resubmit(f.ctx, letter, keys)
		f.must(err)
		before := f.dump()
		_, err = f.Envelopes.Resubmit(f.ctx, letter, keys)
		f.fails("again", err, envelopes.ErrSettled)
		same(f, "rows", f.dump(), before)
		_, err = f.Envelopes.Letter(f.ctx, dead.ID)
		f.fails("read again", err, envelopes.ErrSettled)
	}
	same(f, "pending", len(f.next(f.thread(threadKey(1)))), 2)
	_, err := f.Envelopes.Letter(f.ctx, 12345)
	f.fails("unknown", err, storage.ErrNotFound)
}

func resubmittedAfterRepetition(f *fixture) {
	dead := f.unread()
	f.message(threadKey(1), said("C1/1", "hi"), triggers) // read by the backfill of a later version, under its own key
	stored := f.resubmit(dead.ID, event.Keys{Kind: event.KindMessage, MessageID: "C1/1", Thread: threadKey(1)})
	result := f.record(stored.Thread, dead.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, triggers)
	same(f, "disposition", result.Disposition, event.Duplicate)
	same(f, "messages", f.count("messages"), 1)
}

func resubmittedAfterDelete(f *fixture) {
	dead := f.bury(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	f.change(threadKey(1), deleted("C1/1"), nil)
	letter, err := f.Envelopes.Letter(f.ctx, dead.ID)
	f.must(err)
	_, err = f.Envelopes.Resubmit(f.ctx, letter, event.Keys{})
	f.fails("resubmit", err, envelopes.ErrRemoved)
}

func discarded(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	dead := f.bury(a)
	f.must(f.Envelopes.Discard(f.ctx, dead.ID))
	f.must(f.Envelopes.Discard(f.ctx, dead.ID)) // a repetition changes nothing
	d := f.letter(dead.ID)
	same(f, "letter", []any{d.State, d.Error, len(f.body(dead.ID))}, []any{listing.LetterDiscarded, errUnreadable.Error(), 0})
	same(f, "sent again", f.accept(a).Duplicate, true)
	same(f, "due", f.due(intake), nil)
	list, err := f.Listing.DeadLetters(f.ctx, 0, 10)
	f.must(err)
	same(f, "listed", len(list), 0)

	f.message(threadKey(1), said("C1/2", "hi"), passive)
	f.fails("discard a message", f.Envelopes.Discard(f.ctx, dead.ID+1), envelopes.ErrSettled)
	_, err = f.Listing.DeadLetter(f.ctx, dead.ID+1)
	f.fails("show a message", err, storage.ErrNotFound)
}

func deadLettersListed(f *fixture) {
	var want []int64
	for range 5 {
		want = append([]int64{f.unread().ID}, want...)
	}
	var got []int64
	for before := int64(0); ; before = got[len(got)-1] {
		page, err := f.Listing.DeadLetters(f.ctx, before, 2)
		f.must(err)
		for _, d := range page {
			got = append(got, d.ID)
		}
		if len(page) < 2 {
			break
		}
	}
	same(f, "ids", got, want)
}
