package journaltest

import (
	"math"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

func noticePromises() []promise {
	return []promise{
		{"the notice of a run has a thread_seq, and no transcript shows it", noticeOutside},
		{"the notice of a withdrawn run is stored with the run's end", noticeOfWithdrawn},
		{"a message shows the state of the run that it asked for", statesOfRun},
		{"a message shows how its run ended after the run's row is gone", statesWithoutRow},
		{"a message has the reason of its trigger", reasonStored},
	}
}

// asks returns the state of each message's run, as "seq state error"; "seq" for none.
func (f *fixture) asks(thread event.ThreadKey) []string {
	f.Helper()
	return each(f.list(thread), func(m messages.Listed) string {
		if m.Asked == nil {
			return string(m.Author)
		}
		return strings.TrimSpace(m.Asked.State + " " + m.Asked.Error)
	})
}

func noticeOutside(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.fail(run, "Sorry.")
	notice := f.list(threadKey(1))[1]
	same(f, "author", notice.Author, messages.BySystem)
	same(f, "role", notice.Author.Role(), "system")
	same(f, "metadata", string(notice.Metadata), `{"k":1}`)
	same(f, "run", notice.Run, run.ID)

	f.message(threadKey(1), said("C1/2", "ho"), triggers)
	next := f.begin(threadKey(1))
	transcript, err := f.Runs.Transcript(f.ctx, next, runs.Window{Turns: 50, Bytes: 1000, Context: 20})
	f.must(err)
	same(f, "turns", len(transcript), 2)
	same(f, "the failed turn", contents(transcript[0].Messages), []string{"hi"})
	same(f, "its context", len(transcript[0].Context)+len(transcript[1].Context), 0)
	reply := answer("Hello.")
	reply.Stale = "drop"
	same(f, "the reply after the notice", f.commit(next, reply).State, runs.Done)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Sorry.", "3 ho", "4 Hello."})
}

func noticeOfWithdrawn(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.change(threadKey(1), deleted("C1/1"), nil)
	reply := answer("Hello.", "Hello.")
	reply.Withdrawn = outbox.Notice{Text: "Deleted."}
	same(f, "result", f.commit(run, reply).State, runs.Canceled)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 -", "2 Deleted."})
	same(f, "state", f.asks(threadKey(1)), []string{"cancelled Deleted.", "system"})
	same(f, "deliveries", f.count("deliveries"), 0)
	_, err := f.Runs.CommitReply(f.ctx, f.claim(run.Thread), run, reply)
	f.fails("a second notice", err, storage.ErrFenced)
}

func statesOfRun(f *fixture) {
	f.message(threadKey(1), said("C1/0", "before"), passive)
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	same(f, "before the run", f.asks(threadKey(1)), []string{"human", "queued"})
	run := f.begin(threadKey(1))
	same(f, "during the run", f.asks(threadKey(1)), []string{"human", "running"})
	same(f, "its id", f.list(threadKey(1))[1].Asked.ID, run.ID)
	f.commit(run, answer("Hello."))
	f.message(threadKey(1), said("C1/2", "ho"), triggers)
	f.fail(f.begin(threadKey(1)), "Sorry.")
	same(f, "the failed run", *f.list(threadKey(1))[3].Asked, messages.Asked{ID: f.list(threadKey(1))[4].Run, State: "failed", Error: "Sorry.", Cause: "the agent is gone"})
	f.message(threadKey(1), said("C1/3", "hum"), triggers)
	run = f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/4", "never mind"), passive)
	reply := answer("Hello.")
	reply.Stale = "drop"
	f.commit(run, reply)
	same(f, "afterwards", f.asks(threadKey(1)), []string{"human", "done", "agent", "failed Sorry.", "system",
		"cancelled stale: newer messages were recorded", "human"})
}

func statesWithoutRow(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "hi", "Hello.")
	f.message(threadKey(1), said("C1/2", "ho"), triggers)
	f.fail(f.begin(threadKey(1)), "Sorry.")
	f.exec(`DELETE FROM runs`)
	same(f, "states", f.asks(threadKey(1)), []string{"done", "agent", "failed Sorry.", "system"})
}

func reasonStored(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	f.message(threadKey(1), said("C1/2", "ho"), triggers)
	reasons := func() []string {
		return each(f.list(threadKey(1)), func(m messages.Listed) string { return string(m.Trigger) + " " + m.Reason })
	}
	same(f, "reasons", reasons(), []string{"passive no-mention", "run mention"})
	f.change(threadKey(1), edited("C1/1", "hi @bot", "1"), mentions)
	same(f, "after an edit", reasons(), []string{"run mention", "run mention"})
}

func listingPromises() []promise {
	return []promise{
		{"a thread's messages are read in pages, forwards and backwards", pagesOfThread},
		{"a workspace's threads are listed, the last active first", threadsOfWorkspace},
		{"a thread has an agent while a turn is due or a run goes on", agentOfThread},
		{"a thread is shown by its first message of a person or an agent that has a text", firstOfThread},
		{"the cost of a page of messages does not depend on the thread", pageBounded},
		{"a message that is kept out of memory is in its own turn only", outOfMemory},
		{"messages to different agents are turns of their own", turnOfEachAgent},
		{"a message to another agent interrupts no run", otherAgentWaits},
		{"a stale reply takes no message to another agent", rerunOfAgent},
		{"the heir of a removed agent gets its waiting messages", heirGetsMessages},
	}
}

func agentOfThread(f *fixture) {
	agent := func() string {
		list, _, err := f.Listing.AllThreads(f.ctx, listing.ThreadFilter{Workspaces: []string{workspace}, Limit: 10})
		f.must(err)
		same(f, "threads", len(list), 1)
		return list[0].Agent
	}
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	same(f, "while its turn is due", agent(), "helper")
	run := f.begin(threadKey(1))
	same(f, "while its run goes on", agent(), "helper")
	f.commit(run, answer("Hello."))
	same(f, "afterwards", agent(), "")
}

func pagesOfThread(f *fixture) {
	id := f.threadID(threadKey(1))
	_, err := f.Messages.ThreadMessages(f.ctx, workspace, id, messages.Page{Limit: 2})
	f.fails("a missing thread", err, storage.ErrNotFound)
	for _, text := range []string{"1", "2", "3", "4", "5"} {
		f.message(threadKey(1), said("C1/"+text, text), passive)
	}
	page := func(p messages.Page) []string {
		list, err := f.Messages.ThreadMessages(f.ctx, workspace, id, p)
		f.must(err)
		return each(list, func(m messages.Listed) string { return m.Content })
	}
	same(f, "the first page", page(messages.Page{Limit: 2}), []string{"1", "2"})
	same(f, "the next page", page(messages.Page{After: 2, Limit: 2}), []string{"3", "4"})
	same(f, "the last page", page(messages.Page{Before: 100, Limit: 2}), []string{"4", "5"})
	same(f, "the page before", page(messages.Page{Before: 4, Limit: 2}), []string{"2", "3"})
	same(f, "a range", page(messages.Page{After: 1, Before: 4, Limit: 5}), []string{"2", "3"})
	_, err = f.Messages.ThreadMessages(f.ctx, "other", id, messages.Page{Limit: 2})
	f.fails("another workspace", err, storage.ErrNotFound)
}

func firstOfThread(f *fixture) {
	f.message(threadKey(1), said("C1/1", "gone"), triggers)
	f.fail(f.begin(threadKey(1)), "Sorry.")
	f.message(threadKey(1), said("C1/2", "first"), passive)
	f.message(threadKey(1), said("C1/3", "second"), passive)
	f.change(threadKey(1), deleted("C1/1"), nil)
	threads, err := f.Messages.Threads(f.ctx, workspace, "", 2)
	f.must(err)
	same(f, "first", threads[0].First.Content, "first")
}

func pageBounded(f *fixture) {
	cost := func(n, list int) tally {
		key := threadKey(n)
		f.message(key, said(string(key), "0"), passive)
		f.grow(key, list)
		counting := &counter{Engine: f.engine, bound: "m.seq BETWEEN"}
		page, err := journal.New(counting, journal.Options{}).Messages.ThreadMessages(f.ctx, workspace, f.threadID(key), messages.Page{Before: 50, Limit: 10})
		f.must(err)
		same(f, "messages", len(page), 10)
		return counting.tally
	}
	same(f, "cost of 1,000 messages against 100", cost(2, 1_000), cost(1, 100))
}

func threadsOfWorkspace(f *fixture) {
	for i, text := range []string{"one", "two", "three"} {
		f.message(threadKey(i+1), said("C1/"+text, text), triggers)
		f.clock.advance(1e9)
	}
	f.accept(f.envelope(event.KindMessage, threadKey(4), "C1/4")) // it has no message yet
	f.commit(f.begin(threadKey(1)), answer("Hello."))
	f.message(threadKey(3), said("C1/5", "more"), passive)
	var got []string
	before := ""
	for {
		page, err := f.Messages.Threads(f.ctx, workspace, before, 2)
		f.must(err)
		for _, t := range page {
			got = append(got, t.First.Content+" "+string(t.Key)+" "+strings.Repeat("*", int(t.Messages)))
			same(f, "id", t.ID, f.threadID(t.Key))
			before = t.Cursor()
		}
		if len(page) < 2 {
			break
		}
	}
	same(f, "threads", got, []string{"three slack:acme:C1:3 **", "one slack:acme:C1:1 **", "two slack:acme:C1:2 *"})
	none, err := f.Messages.Threads(f.ctx, "other", "", 2)
	f.must(err)
	same(f, "of another workspace", len(none), 0)
	if _, err := f.Messages.Threads(f.ctx, workspace, "soon", 2); err == nil {
		f.Fatalf("a faulty cursor was taken")
	}
}

// secret keeps messages with the word secret out of memory.
func secret(decide policy) policy {
	return func(m *event.Message, look record.Look) record.Decision {
		d := decide(m, look)
		d.NoMemory = strings.Contains(m.Content, "secret")
		return d
	}
}

func outOfMemory(f *fixture) {
	turns := func() []string { return f.turnsOf(f.begin(threadKey(1)), 50) }
	f.message(threadKey(1), said("C1/1", "a secret"), secret(passive))
	f.message(threadKey(1), said("C1/2", "heard"), secret(passive))
	f.message(threadKey(1), said("C1/3", "a secret question"), secret(triggers))
	same(f, "its own turn", turns(), []string{"heard|a secret question|"})
	f.fail(f.begin(threadKey(1)), "Sorry.")
	for range 10 { // more turns than one query reads
		f.message(threadKey(1), said("C1/4"+strings.Repeat("x", f.serial), "a secret turn"), secret(triggers))
		f.fail(f.begin(threadKey(1)), "Sorry.")
	}
	f.message(threadKey(1), said("C1/5", "hi"), secret(triggers))
	same(f, "the next turn", turns(), []string{"heard|hi|"})
	f.commit(f.begin(threadKey(1)), answer("Hello."))
	f.message(threadKey(1), said("C1/6", "ho"), secret(triggers))
	same(f, "the turn after it", turns(), []string{"heard|hi|Hello.", "|ho|"})
}

// tells records a message that asks an agent.
func (f *fixture) tells(id, to string) record.Result {
	f.Helper()
	return f.tell(id, triggers, func(e *record.Entry) { e.Agent, e.Begin = to, false })
}

// beginFor begins the turn of an agent, which must be due.
func (f *fixture) beginFor(to string) *runs.Run {
	f.Helper()
	run, err := f.Runs.BeginRun(f.ctx, f.claim(f.thread(threadKey(1))), to, false, func(*runs.Run) bool { return false }, math.MaxInt64)
	f.must(err)
	return run
}

// belongsTo fails the test unless the turn, which one agent would begin, is another's.
func (f *fixture) belongsTo(begins, want string) {
	f.Helper()
	_, err := f.Runs.BeginRun(f.ctx, f.claim(f.thread(threadKey(1))), begins, false, func(*runs.Run) bool { return false }, math.MaxInt64)
	f.fails("the turn", err, runs.OtherAgentError(want))
}

func turnOfEachAgent(f *fixture) {
	for _, told := range [][2]string{{"C1/1", agent}, {"C1/2", agent}, {"C1/3", "other"}, {"C1/4", agent}} {
		f.tells(told[0], told[1])
	}
	f.belongsTo("other", agent)
	run := f.beginFor(agent)
	same(f, "asked", contents(run.Messages), []string{"C1/1", "C1/2"})
	same(f, "more", f.commit(run, answer("Hello.")).More, true)
	f.belongsTo(agent, "other")
	run = f.beginFor("other")
	same(f, "the other is asked", contents(run.Messages), []string{"C1/3"})
	f.tells("C1/5", agent)
	f.belongsTo(agent, "other")
	same(f, "resumed", f.beginFor("other").ID, run.ID)
	f.commit(run, answer("Hello from the other."))
	f.belongsTo("other", agent)
	same(f, "asked at last", contents(f.beginFor(agent).Messages), []string{"C1/4", "C1/5"})
}

func otherAgentWaits(f *fixture) {
	f.tells("C1/1", agent)
	run := f.beginFor(agent)
	f.tells("C1/2", "other")
	reply := answer("Hello.")
	reply.Interruptible = true
	same(f, "result", f.commit(run, reply).State, runs.Done)
	f.belongsTo(agent, "other")
}

func rerunOfAgent(f *fixture) {
	f.tells("C1/1", agent)
	run := f.beginFor(agent)
	f.tells("C1/2", "other")
	f.tells("C1/3", agent)
	reply := answer("Hello.")
	reply.Stale = "rerun"
	same(f, "result", f.commit(run, reply).State, runs.Unfinished)
	run = f.beginFor(agent)
	same(f, "asked", contents(run.Messages), []string{"C1/1", "C1/3"})
	same(f, "result", f.commit(run, reply).State, runs.Done)
	f.belongsTo(agent, "other")
	same(f, "the other is asked", contents(f.beginFor("other").Messages), []string{"C1/2"})
}

func heirGetsMessages(f *fixture) {
	f.orphan(threadKey(1))
	f.must(f.Runs.AssignOrphans(f.ctx, []string{agent}, agent, 0))
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"hi"})
}
