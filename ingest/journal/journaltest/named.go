package journaltest

import (
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

func namedPromises() []promise {
	return []promise{
		{"a run has the id that its client gave, and its agent knows it by an id of the journal", namedRun},
		{"a run is known by its name before its message is recorded", namedEarly},
		{"a run is known by the client's id of its message to its sender", namedByMessage},
		{"a run that begins with its message has the id that its client gave", namedAtOnce},
		{"clients of two threads may give the same id", namedTwice},
		{"a message with an id for its run is a turn of its own", namedAlone},
		{"no other message joins a run with an id of its client", namedJoined},
		{"the same id in a thread is the same run", namedAgain},
		{"a run that has not begun is stopped by its name, alone", namedStopped},
		{"what a client gave for a run is deleted with its message", namedInputDeleted},
	}
}

// asker is the sender of said, as a client that makes threads.
const asker = "slack:U1"

// asks returns a message that asks for a run under an id of the client's.
func asks(id, content, run string) *event.Message {
	m := said(id, content)
	m.RunID, m.RunInput = run, []byte(`{"run":"`+run+`"}`)
	return m
}

// named returns the id of the run that a client asked for.
func (f *fixture) named(thread event.ThreadKey, name string) string {
	f.Helper()
	run, err := f.Runs.NamedRun(f.ctx, workspace, asker, f.threadID(thread), name)
	f.must(err)
	same(f, "thread", run.ThreadID, f.threadID(thread))
	return run.ID
}

// input returns what a client gave for a run.
func (f *fixture) input(run *runs.Run) string {
	f.Helper()
	input, err := f.Runs.RunInput(f.ctx, run)
	f.must(err)
	return string(input)
}

func namedRun(f *fixture) {
	f.make(1, asker, threads.ModeOpen)
	f.message(threadKey(1), asks("C1/1", "hi", "run-1"), triggers)
	same(f, "before it begins", f.named(threadKey(1), "run-1"), "")
	run := f.begin(threadKey(1))
	same(f, "run", run.ID, "run-1")
	same(f, "named", run.Named, true)
	same(f, "as the thread has it", f.named(threadKey(1), "run-1"), "run-1")
	same(f, "input", f.input(run), `{"run":"run-1"}`)
	resumed := f.successor("second").begin(threadKey(1))
	same(f, "after a restart", resumed.ID, "run-1")
	same(f, "input after a restart", f.input(resumed), `{"run":"run-1"}`)
	same(f, "named after a restart", resumed.Named, true)
	known := run.AgentID()
	same(f, "an id of the journal", known, run.Messages[0].UUID)
	same(f, "the same after a restart", resumed.AgentID(), known)
	for _, name := range []string{"run-1", known} {
		later, err := f.Runs.LaterRun(f.ctx, name)
		f.must(err)
		same(f, "the run that the agent may answer", later, runs.Later{ID: "run-1", Thread: run.Thread, Agent: agent})
		id, err := f.Runs.AgentID(f.ctx, run.Thread, name)
		f.must(err)
		same(f, "as agents know it", id, known)
	}
	same(f, "by the agent's id", f.named(threadKey(1), known), "run-1")
	_, err := f.Runs.NamedRun(f.ctx, "other", asker, f.threadID(threadKey(1)), "run-1")
	f.fails("another workspace", err, storage.ErrNotFound)
	_, err = f.Runs.NamedRun(f.ctx, workspace, asker, f.threadID(threadKey(2)), "run-1")
	f.fails("another thread", err, storage.ErrNotFound)
}

func namedByMessage(f *fixture) {
	f.make(1, asker, threads.ModeOpen)
	says := func(id, client string, decide policy) {
		m := said(id, "hi")
		m.ClientMessageID = client
		f.message(threadKey(1), m, decide)
	}
	says("C1/1", "c-1", triggers)
	same(f, "before it begins", f.named(threadKey(1), "c-1"), "")
	run := f.begin(threadKey(1))
	same(f, "after it has begun", f.named(threadKey(1), "c-1"), run.ID)
	says("C1/2", "c-2", passive)
	for name, by := range map[string]string{"c-1": "user:1", "c-2": asker} { // another person's, and one that asks for no run
		_, err := f.Runs.NamedRun(f.ctx, workspace, by, f.threadID(threadKey(1)), name)
		f.fails(name, err, storage.ErrNotFound)
	}
	_, err := f.Runs.NamedRun(f.ctx, workspace, asker, f.threadID(threadKey(2)), "c-1")
	f.fails("another thread", err, storage.ErrNotFound)
}

func namedEarly(f *fixture) {
	f.make(1, asker, threads.ModeOpen)
	request := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	request.Keys.Dedupe = event.RunKey(f.threadID(threadKey(1)), "run-1")
	accepted := f.accept(request)
	named := func(by, name string) error {
		_, err := f.Runs.NamedRun(f.ctx, workspace, by, "", name)
		return err
	}
	same(f, "before it is recorded", f.named(threadKey(1), "run-1"), "")
	f.must(named(asker, "run-1"))
	f.fails("another run", named(asker, "run-2"), storage.ErrNotFound)
	f.fails("another client", named("user:1", "run-1"), storage.ErrNotFound)
	f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: asks("C1/1", "hi", "run-1")}, passive)
	f.fails("a message that starts no run", named(asker, "run-1"), storage.ErrNotFound)
}

func namedStopped(f *fixture) {
	f.make(1, asker, threads.ModeOpen)
	f.make(2, asker, threads.ModeOpen)
	f.message(threadKey(1), said("C1/1", "one"), triggers)
	first := f.begin(threadKey(1))
	f.message(threadKey(1), asks("C1/2", "two", "run-2"), triggers)
	f.message(threadKey(1), asks("C1/3", "three", "run-3"), triggers)
	stop := func(name string) error {
		return f.Runs.StopNamedRun(f.ctx, workspace, asker, f.threadID(threadKey(1)), name, outbox.Notice{Text: "Stopped.", Metadata: []byte(`{}`)})
	}
	f.fails("an unknown one", stop("run-4"), storage.ErrNotFound)
	f.must(stop("run-2"))
	f.fails("again", stop("run-2"), storage.ErrNotFound)
	same(f, "run", f.named(threadKey(1), "run-2"), "run-2")
	page, err := f.Runs.RunEvents(f.ctx, "run-2", 0, 10)
	f.must(err)
	same(f, "state", page.State, "cancelled")
	f.commit(first, answer("re one"))
	second := f.begin(threadKey(1))
	same(f, "asked next", contents(second.Messages), []string{"three"})
	f.fails("one that has begun", stop("run-3"), storage.ErrNotFound)
	f.commit(second, answer("re three"))
	same(f, "thread", f.lines(threadKey(1)), []string{"1 one", "2 two", "3 three", "4 Stopped.", "5 re one", "6 re three"})

	f.message(threadKey(2), asks("C1/4", "four", "run-4"), triggers)
	f.must(f.Runs.StopNamedRun(f.ctx, workspace, asker, f.threadID(threadKey(2)), "run-4", outbox.Notice{Text: "Stopped."}))
	same(f, "a run of a thread without another turn", f.mayBegin(threadKey(2), false) == nil, true)
	same(f, "turns", f.due(turns), nil)
}

func namedAtOnce(f *fixture) {
	f.make(1, asker, threads.ModeOpen)
	f.make(2, asker, threads.ModeOpen)
	begins := func(n int, m *event.Message) *runs.Run {
		accepted := f.accept(f.envelope(event.KindMessage, threadKey(n), m.ExternalID))
		e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: m}, triggers)
		e.Begin = true
		result, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
		f.must(err)
		return result.Begun
	}
	run := begins(1, asks("C1/1", "hi", "run-1"))
	same(f, "run", run.ID, "run-1")
	same(f, "named", run.Named, true)
	same(f, "its input", f.input(run), `{"run":"run-1"}`)
	other := begins(2, asks("C1/2", "hi", "run-1"))
	same(f, "the other thread's has the same id", other.ID == "run-1", false)
	same(f, "as the other thread has it", f.named(threadKey(2), "run-1"), other.ID)
	same(f, "without an id", begins(3, said("C1/3", "hi")).Named, false)
}

func namedTwice(f *fixture) {
	for n := 1; n <= 2; n++ {
		by := []string{"", olivia, ash}[n]
		_, made := f.make(n, by, threads.ModeOpen)
		same(f, "made", made, true)
		m := asks([]string{"", "C1/1", "C1/2"}[n], "hi", "run-1")
		m.Metadata.SenderID = by
		f.message(threadKey(n), m, triggers)
	}
	first, second := f.begin(threadKey(1)), f.begin(threadKey(2))
	same(f, "first", first.ID, "run-1")
	same(f, "the second has the same id", second.ID == "run-1", false)
	for by, want := range map[string]string{"user:1": first.ID, "user:2": second.ID} {
		run, err := f.Runs.NamedRun(f.ctx, workspace, by, "", "run-1")
		f.must(err)
		same(f, by, run.ID, want)
	}
	_, err := f.Runs.NamedRun(f.ctx, workspace, "user:3", "", "run-1")
	f.fails("another client", err, storage.ErrNotFound)
	shared, err := f.Threads.Thread(f.ctx, workspace, f.threadID(threadKey(2)))
	f.must(err)
	_, err = f.Threads.AddParticipant(f.ctx, &shared, olivia)
	f.must(err)
	run, err := f.Runs.NamedRun(f.ctx, workspace, olivia, "", "run-1")
	f.must(err)
	same(f, "a later run of another client's is not hers", run.ID, first.ID)
	run, err = f.Runs.NamedRun(f.ctx, workspace, olivia, shared.ID, "run-1")
	f.must(err)
	same(f, "it is known in its thread", run.ID, second.ID)
	f.commit(first, answer("one"))
	f.message(threadKey(3), asks("C1/3", "hi", "run-1"), triggers)
	same(f, "a third has the id of one that has ended", f.begin(threadKey(3)).ID == "run-1", false)
}

func namedAlone(f *fixture) {
	for _, m := range []*event.Message{
		said("C1/1", "one"), said("C1/2", "two"), asks("C1/3", "three", "run-3"), asks("C1/4", "four", "run-4"), said("C1/5", "five"), said("C1/6", "six"),
	} {
		f.message(threadKey(1), m, triggers)
	}
	for _, want := range [][]string{{"one", "two"}, {"three"}, {"four"}, {"five", "six"}} {
		run := f.begin(threadKey(1))
		same(f, "messages", contents(run.Messages), want)
		same(f, "named", run.Named, len(want) == 1)
		f.commit(run, answer("ok"))
	}
	same(f, "turns", f.due(turns), nil)
}

func namedJoined(f *fixture) {
	f.message(threadKey(1), said("C1/1", "earlier"), passive)
	f.message(threadKey(1), asks("C1/2", "alone", "run-2"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/1", "earlier"), triggers)
	f.message(threadKey(1), said("C1/3", "newer"), triggers)
	same(f, "joined", contents(f.join(run)), []string{})
	reply := answer("Hello.")
	reply.Stale = "rerun"
	same(f, "a stale reply", f.commit(run, reply).State, runs.Unfinished)
	run = f.begin(threadKey(1))
	same(f, "messages of the repeated run", contents(run.Messages), []string{"alone"})
	same(f, "its input", f.input(run), `{"run":"run-2"}`)
	same(f, "more", f.commit(run, answer("Hello.")).More, true)
	same(f, "asked next", contents(f.begin(threadKey(1)).Messages), []string{"earlier", "newer"})
}

func namedAgain(f *fixture) {
	first := f.message(threadKey(1), asks("C1/1", "hi", "run-1"), triggers)
	again := f.message(threadKey(1), asks("C1/2", "other words", "run-1"), triggers)
	same(f, "disposition", again.Disposition, event.Duplicate)
	same(f, "message", again.Message.UUID, first.Message.UUID)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi"})
	fromBot := asks("C1/3", "hi", "run-1") // a bot's message is looked up before it is stored
	fromBot.Metadata.SenderType = event.Bot
	same(f, "in another thread", f.message(threadKey(2), fromBot, triggers).Disposition, event.Stored)
}

func namedInputDeleted(f *fixture) {
	f.message(threadKey(1), asks("C1/1", "hi", "run-1"), triggers)
	run := f.begin(threadKey(1))
	f.change(threadKey(1), deleted("C1/1"), triggers)
	same(f, "input", f.input(run), "")
}
