package journaltest

import (
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/strangers"
)

func strangerPromises() []promise {
	return []promise{
		{"a stranger asks once, and the payload that waits is recorded once after an answer", strangerAdmitted},
		{"only the first answer to a question counts", firstAnswerCounts},
		{"the payload of a refused stranger, or of a deleted message, is empty and is never recorded", strangerRefused},
		{"an edit waits as long as the approvers may admit its message", editWaitsForApprovers},
		{"a stranger asks again once the last decision has taken its effects, and not after always or no", strangerAsksAgain},
		{"an answer while the question is on its way is looked at once more", answeredOnTheWay},
		{"an operator decides about anybody, and takes a decision back", operatorDecides},
	}
}

// asksAbout returns a policy that asks about the sender of each message.
func asksAbout(question string) policy {
	return func(m *event.Message, _ record.Look) record.Decision {
		return record.Decision{
			Ignore: true, Trigger: messages.TriggerNone, Reason: event.ReasonStrangerAsked, Tell: &record.Tell{Text: "Wait."},
			Asks: &strangers.Stranger{SenderID: m.Metadata.SenderID, Name: m.Metadata.SenderDisplayName, Question: question, Agent: agent, Approvers: []string{"U8", "U9"}},
		}
	}
}

// stranger returns what is stored of the author of said.
func (f *fixture) stranger() (s strangers.Stranger) {
	f.Helper()
	list, err := f.Strangers.List(f.ctx)
	f.must(err)
	if len(list) == 1 {
		s = list[0]
	}
	return s
}

// answers answers a question, and returns whether the answer counts.
func (f *fixture) answers(question string, state strangers.State) bool {
	f.Helper()
	press := said("P/"+question+string(state), "")
	press.Pressed = "b"
	accepted := f.accept(f.envelope(event.KindAction, threadKey(9), press.ExternalID))
	return f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindAction, Message: press}, decided(record.Decision{
		Ignore: true, Trigger: messages.TriggerNone, Reason: event.ReasonAction, Decides: &record.Verdict{Question: question, State: state, By: "slack:U9"},
	})).Strangers
}

// knocks lets a stranger ask, and returns the envelope.
func (f *fixture) knocks(id, question string) int64 {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), id))
	result := f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: said(id, "hi")}, asksAbout(question))
	same(f, "result", result.Result, *event.Ignore(event.ReasonStrangerAsked))
	return accepted.ID
}

// settled notes that the last decision has taken its effects.
func (f *fixture) settled() {
	f.Helper()
	s := f.stranger()
	f.must(f.Strangers.Settle(f.ctx, &s))
}

func strangerAdmitted(f *fixture) {
	envelope := f.knocks("C1/1", "q1")
	same(f, "thread", f.lines(threadKey(1)), []string{"1 Wait."})
	s := f.stranger()
	same(f, "stranger", s.SenderID+" "+s.Name+" "+string(s.State)+" "+s.Approvers[1], "slack:U1 Olivia asked U9")
	due, err := f.Strangers.Due(f.ctx)
	f.must(err)
	same(f, "due", len(due), 1)
	waits := func() bool {
		waits, err := f.Strangers.Wait(f.ctx)
		f.must(err)
		return waits
	}
	f.must(f.Strangers.Told(f.ctx, "q1", f.clock.Now().Add(time.Hour)))
	same(f, "waits", waits(), true)
	same(f, "body", string(f.body(envelope)), "payload 1 of C1/1")

	same(f, "the answer counts", f.answers("q1", strangers.Always), true)
	admitted, err := f.Strangers.Admitted(f.ctx)
	f.must(err)
	same(f, "admitted", admitted, map[string]map[string]bool{workspace: {"slack:U1": true}})
	thread, err := f.Envelopes.Again(f.ctx, envelope)
	f.must(err)
	same(f, "its thread", thread, f.thread(threadKey(1)))
	next := f.next(thread)
	same(f, "pending", []int64{int64(len(next)), next[0].ID}, []int64{1, envelope})
	f.record(thread, envelope, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, triggers)
	for range 2 {
		again, err := f.Envelopes.Again(f.ctx, envelope)
		f.must(err)
		same(f, "a second time", again, 0)
	}
	f.settled()
	same(f, "thread afterwards", f.lines(threadKey(1)), []string{"1 Wait.", "2 hi"})
	same(f, "is settled", f.stranger().DueAt.IsZero(), true)
	same(f, "waits no more", waits(), false)
}

func firstAnswerCounts(f *fixture) {
	f.knocks("C1/1", "q1")
	same(f, "another question's", f.answers("q2", strangers.Always), false)
	same(f, "the first", f.answers("q1", strangers.No), true)
	same(f, "the second", f.answers("q1", strangers.Always), false)
	same(f, "state", f.stranger().State, strangers.No)
}

func strangerRefused(f *fixture) {
	envelope := f.knocks("C1/1", "q1")
	f.must(f.Envelopes.Drop(f.ctx, envelope))
	same(f, "body", len(f.body(envelope)), 0)
	thread, err := f.Envelopes.Again(f.ctx, envelope)
	f.must(err)
	same(f, "again", thread, 0)
	f.answers("q1", strangers.Once)
	f.settled()
	envelope = f.knocks("C1/2", "q2")
	f.change(threadKey(1), deleted("C1/2"), nil)
	same(f, "body of a deleted message", len(f.body(envelope)), 0)
	thread, err = f.Envelopes.Again(f.ctx, envelope)
	f.must(err)
	same(f, "a deleted one", thread, 0)
}

func editWaitsForApprovers(f *fixture) {
	review := func() (ended []int64) {
		f.Helper()
		f.clock.advance(2 * envelopes.WaitLimit)
		f.must(f.Envelopes.ReviewWaiting(f.ctx, f.clock.Now().Add(-envelopes.WaitLimit), func(int64) {}, func(r envelopes.Result) { ended = append(ended, r.Envelope) }))
		return ended
	}
	edits := func(id string) int64 {
		f.Helper()
		accepted := f.accept(f.envelope(event.KindEdit, threadKey(1), id))
		result := f.record(accepted.Thread, accepted.ID, edited(id, "hello", "2"), triggers)
		same(f, "waits", result.Waits, true)
		return accepted.ID
	}
	envelope := f.knocks("C1/1", "q1")
	edit := edits("C1/1")
	same(f, "ended while the question is open", len(review()), 0)
	f.answers("q1", strangers.Once)
	thread, err := f.Envelopes.Again(f.ctx, envelope)
	f.must(err)
	same(f, "ended while the message is about to be recorded", len(review()), 0)
	f.record(thread, envelope, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, triggers)
	same(f, "due behind the message", f.next(thread)[0].ID, edit)
	f.record(thread, edit, edited("C1/1", "hello", "2"), func(m *event.Message, look record.Look) record.Decision {
		same(f, "the envelope of the edited message, another one", []bool{look.Carries(envelope), look.Carries(envelope + 1000)}, []bool{true, false})
		return triggers(m, look)
	})
	same(f, "thread", f.lines(threadKey(1)), []string{"1 Wait.", "2 hello"})
	f.settled()

	envelope = f.knocks("C1/2", "q2")
	edit = edits("C1/2")
	f.answers("q2", strangers.No)
	f.must(f.Envelopes.Drop(f.ctx, envelope))
	same(f, "ended after a refusal", review(), []int64{edit})
}

func strangerAsksAgain(f *fixture) {
	f.knocks("C1/1", "q1")
	fails := func(id, question string) {
		f.Helper()
		accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), id))
		_, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said(id, "hi")}, asksAbout(question)))
		if err == nil {
			f.Fatalf("%s asks a second time", id)
		}
	}
	fails("C1/2", "q2")
	f.answers("q1", strangers.Once)
	fails("C1/3", "q3")
	f.settled()
	f.knocks("C1/4", "q4")
	f.must(f.Strangers.Expire(f.ctx, "q4"))
	same(f, "state", f.stranger().State, strangers.Expired)
	f.settled()
	f.knocks("C1/5", "q5")
	same(f, "an answer to an earlier question", f.answers("q4", strangers.Always), false)
	f.answers("q5", strangers.Always)
	f.settled()
	fails("C1/6", "q6")
}

func answeredOnTheWay(f *fixture) {
	f.knocks("C1/1", "q1")
	s := f.stranger()
	later := f.clock.Now().Add(time.Hour)
	f.must(f.Strangers.Told(f.ctx, "q1", later))
	same(f, "due", f.stranger().DueAt.UnixMilli(), later.UnixMilli())
	f.answers("q1", strangers.No)
	f.settled()
	f.must(f.Strangers.Settle(f.ctx, &s)) // of another state
	f.must(f.Strangers.Told(f.ctx, "q1", later))
	same(f, "due now", f.stranger().DueAt.After(f.clock.Now()), false)
	same(f, "it is due", f.stranger().DueAt.IsZero(), false)
}

func operatorDecides(f *fixture) {
	decide := func(state strangers.State) {
		f.must(f.Strangers.Decide(f.ctx, workspace, "slack:U1", "Olivia", state, "operator:mara"))
	}
	forget := func() bool {
		f.Helper()
		removed, err := f.Strangers.Forget(f.ctx, workspace, "slack:U1")
		f.must(err)
		return removed
	}
	decide(strangers.Always)
	same(f, "nothing is due", f.stranger().DueAt.IsZero(), true)
	decide(strangers.No)
	same(f, "state", f.stranger().State, strangers.No)
	same(f, "taken back", forget(), true)
	same(f, "a second time", forget(), false)
	envelope := f.knocks("C1/1", "q1")
	same(f, "an open question is not taken back", forget(), false)
	decide(strangers.Always)
	s := f.stranger()
	same(f, "the question is answered", []any{s.Question, s.By, s.Envelope, s.DueAt.IsZero()}, []any{"q1", "operator:mara", envelope, false})
	same(f, "before its effects", forget(), false)
	f.settled()
	same(f, "after its effects", forget(), true)
}
