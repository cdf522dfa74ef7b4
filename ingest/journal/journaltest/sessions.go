package journaltest

import (
	"fmt"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

func sessionPromises() []promise {
	return []promise{
		{"an agent's session stays with its thread, for the agent and the id by which it knows the thread", sessionKept},
		{"a session is kept in the step that takes its run", sessionTaken},
		{"a session is not kept for a run that another node works on", sessionFenced},
		{"a command for a new context, and a restart of a conversation, begin a new session", sessionRestarted},
		{"a session leaves with words of its thread, and a run that had the words keeps none", sessionForgotten},
		{"a session leaves with the words that its thread quotes", sessionOfQuote},
		{"a session stays with a message that its author deletes", sessionOfDeleted},
		{"a choice stays with the thread and its agent, also in a new context, and only an offered one is taken", choiceKept},
		{"a session with the name of a forgotten person leaves", sessionNames},
	}
}

// known returns the id by which an agent knows the thread of a run.
func known(run *runs.Run) string { return fmt.Sprint(run.ThreadID, " ", run.ContextFrom) }

// session returns the session of a run's agent.
func (f *fixture) session(run *runs.Run) string {
	f.Helper()
	session, err := f.Runs.Session(f.ctx, run, known(run))
	f.must(err)
	return session
}

func (f *fixture) keepSession(run *runs.Run, session string) {
	f.Helper()
	f.must(f.Runs.KeepSession(f.ctx, f.claim(run.Thread), run, known(run), session, false))
}

// keeps has a run in a thread whose session is kept.
func (f *fixture) keeps(id, content, session string) *runs.Run {
	f.Helper()
	f.message(threadKey(1), said(id, content), triggers)
	run := f.begin(threadKey(1))
	f.keepSession(run, session)
	return run
}

func sessionKept(f *fixture) {
	run := f.keeps("C1/1", "hi", "one")
	f.keepSession(run, "two")
	f.commit(run, answer("Hello."))
	f.message(threadKey(1), said("C1/2", "again"), triggers)
	next := f.node("after").begin(threadKey(1))
	same(f, "session", f.session(next), "two")
	other := *next
	other.Agent = "other"
	same(f, "session of another agent", f.session(&other), "")
	session, err := f.Runs.Session(f.ctx, next, "another id")
	f.must(err)
	same(f, "session under another id", session, "")
	f.message(threadKey(2), said("C1/3", "hi"), triggers)
	same(f, "session of another thread", f.session(f.begin(threadKey(2))), "")
}

func sessionTaken(f *fixture) {
	run := f.keeps("C1/1", "hi", "one")
	for _, take := range []bool{false, true} {
		f.must(f.Runs.KeepSession(f.ctx, f.claim(run.Thread), run, known(run), fmt.Sprint(take), take))
		f = f.node(fmt.Sprint("after ", take))
		run = f.begin(threadKey(1))
		same(f, "taken", run.Taken, take)
		same(f, "session", f.session(run), fmt.Sprint(take))
	}
}

func sessionFenced(f *fixture) {
	run := f.keeps("C1/1", "hi", "one")
	claim := *f.claim(run.Thread)
	f.node("after").begin(threadKey(1))
	f.fails("keep", f.Runs.KeepSession(f.ctx, &claim, run, known(run), "two", true), storage.ErrFenced)
	same(f, "session", f.session(run), "one")
}

func sessionRestarted(f *fixture) {
	run := f.keeps("C1/1", "hi", "one")
	restart := func(id string) {
		f.message(threadKey(1), said(id, "/new"), decided(record.Decision{Trigger: messages.TriggerNone, Reason: event.ReasonCommand, Command: record.CommandNew}))
	}
	restart("C1/2")
	same(f, "session of the run that goes on", f.session(run), "one")
	f.keepSession(run, "two") // it is of the old context
	f.commit(run, answer("Hello."))
	f.message(threadKey(1), said("C1/3", "again"), triggers)
	next := f.begin(threadKey(1))
	same(f, "session after the command", f.session(next), "")
	f.keepSession(next, "three")
	f.commit(next, answer("Hello."))
	f.message(threadKey(1), said("C1/4", "days later"), decided(record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonDirect, Restart: true}))
	same(f, "session after the restart", f.session(f.begin(threadKey(1))), "")
}

func sessionForgotten(f *fixture) {
	f.commit(f.keeps("C1/1", "old words", "one"), answer("Hello."))
	f.clock.advance(time.Hour)
	young := said("C1/2", "young words")
	young.SentAt = f.clock.Now()
	f.message(threadKey(1), young, triggers)
	run := f.begin(threadKey(1))
	same(f, "session before", f.session(run), "one")
	_, err := f.EraseDue(f.ctx, journal.Retention{Messages: time.Minute})
	f.must(err)
	same(f, "session after", f.session(run), "")
	f.keepSession(run, "two")
	same(f, "session of the run that had the words", f.session(run), "")
	f.commit(run, answer("Bye."))
	f.message(threadKey(1), said("C1/3", "new words"), triggers)
	next := f.begin(threadKey(1))
	f.keepSession(next, "three")
	same(f, "session of the next run", f.session(next), "three")
}

func sessionOfQuote(f *fixture) {
	f.message(threadKey(2), leaver("C1/1", "zebra one"), passive)
	quoting := nora("C1/2", "look")
	quoting.Quoted = &event.Quote{ExternalID: "C1/1", Name: "Olivia Ørsted", SenderID: oliviaID, Content: "zebra one"}
	f.message(threadKey(1), quoting, triggers)
	run := f.begin(threadKey(1))
	f.keepSession(run, "one")
	f.commit(run, answer("Hello."))
	f.forget(oliviaID)
	same(f, "session", f.session(run), "")
}

func sessionOfDeleted(f *fixture) {
	run := f.keeps("C1/1", "hi", "one")
	f.commit(run, answer("Hello."))
	f.change(threadKey(1), deleted("C1/1"), passive)
	same(f, "session", f.session(run), "one")
}

func sessionNames(f *fixture) {
	f.message(threadKey(2), leaver("C1/1", "zebra one"), passive)
	run := f.keeps("C1/2", "hi", `{"title":"mail to Olivia Ørsted"}`)
	f.commit(run, answer("Hello."))
	f.forget(oliviaID)
	same(f, "session", f.session(run), "")
}

// offer lets the agent of a run offer two modes.
func (f *fixture) offer(run *runs.Run) {
	f.Helper()
	f.must(f.Runs.Offer(f.ctx, f.claim(run.Thread), run, []stream.Choice{{Name: "mode", Current: "code", Values: []stream.Option{{ID: "code", Label: "Code"}, {ID: "ask", Label: "Only ask"}}}}))
}

// chooses sends a command for a mode, and returns the state that its answer is about.
func (f *fixture) chooses(id, mode string) (state record.ThreadState) {
	f.Helper()
	d := record.Decision{Trigger: messages.TriggerNone, Reason: event.ReasonCommand, Command: record.CommandMode, Subject: mode, Tell: &record.Tell{Message: id}}
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), id))
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said(id, "/mode "+mode)}, decided(d))
	e.Notice = func(t record.Tell) outbox.Notice {
		state = t.State
		return notice(t)
	}
	_, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
	return state
}

func choiceKept(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	same(f, "before the agent has offered it", f.chooses("C1/2", "ask").Picked, "")
	run := f.begin(threadKey(1))
	f.offer(run)
	f.commit(run, answer("Hello."))
	same(f, "one that is not offered", f.chooses("C1/3", "sing").Picked, "")
	state := f.chooses("C1/4", "2")
	same(f, "an offered one", []string{state.Picked, state.Choices[0].Name, state.Choices[0].Current}, []string{"Only ask", "mode", "code"})
	f.message(threadKey(1), said("C1/5", "/new"), decided(record.Decision{Trigger: messages.TriggerNone, Reason: event.ReasonCommand, Command: record.CommandNew}))
	f.message(threadKey(1), said("C1/6", "again"), triggers)
	next := f.begin(threadKey(1))
	f.offer(next)
	choices, err := f.Runs.Choices(f.ctx, next)
	f.must(err)
	same(f, "chosen", each(choices, func(c stream.Choice) string { return c.Chosen }), []string{"ask"})
	next.Agent = "other"
	choices, err = f.Runs.Choices(f.ctx, next)
	f.must(err)
	same(f, "of another agent", len(choices), 0)
}
