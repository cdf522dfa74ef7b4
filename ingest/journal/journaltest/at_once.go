package journaltest

import (
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

func atOncePromises() []promise {
	return []promise{
		{"a message of an idle thread is recorded, and its run begins, with its accept", recordedAtOnce},
		{"a message waits for intake while its thread has an envelope, a turn or a run", notAtOnceBeside},
		{"a message waits for intake without a claim of its thread", notAtOnceUnclaimed},
		{"a message that is known, or needs a closer look, waits for intake", notAtOnceKnown},
		{"a payload is stored by no transaction that fails to record its message", nothingAtOnce},
	}
}

// acceptEntry accepts a payload with the record of its message. The result is nil if the message waits for
// intake.
func (f *fixture) acceptEntry(a envelopes.AcceptRequest, m *event.Message, decide policy) (envelopes.AcceptResult, *record.Result) {
	f.Helper()
	var recorded *record.Result
	e := entry(0, event.Event{Kind: event.KindMessage, Message: m}, decide)
	e.Begin = true
	accepted, err := f.Recorder.AcceptEntry(f.ctx, a, e, func(made envelopes.AcceptResult, r record.Result) {
		same(f, "claim", made.Thread != 0 && made.Fence != 0 && recorded == nil, true)
		recorded = &r
	})
	f.must(err)
	return accepted, recorded
}

// claiming returns a payload of a message, with a request for a claim of its thread.
func (f *fixture) claiming(thread event.ThreadKey, id string) envelopes.AcceptRequest {
	a := f.envelope(event.KindMessage, thread, id)
	a.Claim = true
	return a
}

func recordedAtOnce(f *fixture) {
	for i, id := range []string{"C1/1", "C1/2"} {
		accepted, result := f.acceptEntry(f.claiming(threadKey(1), id), said(id, "hi"), triggers)
		same(f, "recorded", result != nil && result.Begun != nil, true)
		same(f, "pending", result.Pending, 0)
		same(f, "thread", result.Begun.ThreadKey, threadKey(1))
		same(f, "base", result.Begun.BaseSeq, int64(2*i+1))
		settled, err := f.Envelopes.Envelope(f.ctx, accepted.ID)
		f.must(err)
		same(f, "disposition", settled.Disposition, event.Stored)
		same(f, "id of the message", settled.Message.UUID, accepted.MessageUUID)
		ended, err := f.Runs.CommitReply(f.ctx, &accepted.Claim, result.Begun, answer("yes"))
		f.must(err)
		same(f, "end", ended.State, runs.Done)
	}
	a := f.claiming(threadKey(1), "C1/3")
	_, result := f.acceptEntry(a, said("C1/3", "hum"), passive)
	same(f, "passive message", result.Disposition, event.Stored)
	accepted, result := f.acceptEntry(a, said("C1/3", "hum"), passive)
	same(f, "second accept", accepted.Duplicate && result == nil, true)
	same(f, "messages", f.lines(threadKey(1)), []string{"1 hi", "2 yes", "3 hi", "4 yes", "5 hum"})
	same(f, "due", f.due(intake), nil)
}

func notAtOnceBeside(f *fixture) {
	pending := func(what string, thread event.ThreadKey, id string, want int) {
		accepted, result := f.acceptEntry(f.claiming(thread, id), said(id, "hi"), passive)
		same(f, what+": recorded", result != nil, false)
		same(f, what+": envelopes", len(f.next(accepted.Thread)), want)
	}
	f.acceptEntry(f.claiming(threadKey(1), "C1/1"), said("C1/1", "hi"), triggers)
	pending("a run", threadKey(1), "C1/2", 1)
	f.accept(f.claiming(threadKey(2), "C1/3"))
	pending("an envelope", threadKey(2), "C1/4", 2)
	f.message(threadKey(3), said("C1/5", "hi"), triggers)
	f.successor("first").exec(`UPDATE threads SET owner = ''`)
	pending("a turn", threadKey(3), "C1/6", 1)
}

func notAtOnceUnclaimed(f *fixture) {
	a := f.claiming(threadKey(1), "C1/1")
	a.Claim = false
	accepted, result := f.acceptEntry(a, said("C1/1", "hi"), triggers)
	same(f, "recorded", result != nil, false)
	f.claim(accepted.Thread) // as another node
	_, result = f.acceptEntry(f.claiming(threadKey(1), "C1/2"), said("C1/2", "hi"), triggers)
	same(f, "recorded beside another node", result != nil, false)
	same(f, "envelopes", len(f.next(accepted.Thread)), 2)
}

func notAtOnceKnown(f *fixture) {
	f.acceptEntry(f.claiming(threadKey(1), "C1/1"), said("C1/1", "hi"), passive)
	accepted, result := f.acceptEntry(f.claiming(threadKey(1), "C1/1"), said("C1/1", "hi"), triggers)
	same(f, "recorded", result != nil, false)
	same(f, "envelopes", len(f.next(accepted.Thread)), 1)
	accepted, result = f.acceptEntry(f.claiming(threadKey(2), "C1/2"), said("C1/2", "hi"), refused)
	same(f, "refused message recorded", result != nil, false)
	same(f, "envelopes of the refused message", len(f.next(accepted.Thread)), 1)
}

func nothingAtOnce(f *fixture) {
	broken := func(*event.Message, record.Look) record.Decision { panic("a bug in the policy") }
	_, err := f.Recorder.AcceptEntry(f.ctx, f.claiming(threadKey(1), "C1/1"), entry(0, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, broken), nil)
	same(f, "an error that is not the store's", err != nil && !storage.Unavailable(err), true)
	same(f, "envelopes", f.count("envelopes"), 0)
}
