package journaltest

import (
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

func threadHistoryPromises() []promise {
	return []promise{
		{"the read messages of a thread precede its first turn, and no other", historyFirst},
		{"a message that was edited while the thread was read is in its current state", historyEditedMeanwhile},
		{"read messages are stored once", historyOnce},
		{"a thread history without a message is not stored", historyEmpty},
		{"a known message is not stored twice, and its later payload is a duplicate", historyKnown},
		{"an interrupted first turn leaves its thread history to the next turn", historyInterrupted},
		{"a run that begins with its message has the thread history of the previous run", historyBegun},
		{"a read message makes no reply stale, and its edit triggers no run", historyQuiet},
		{"a read message can be edited and deleted", historyChanges},
		{"a read message whose later payload triggers a run belongs to that run alone", historyRaised},
		{"an envelope that waited for a read message is moved to its thread", historyAwaited},
		{"no thread history is stored under a lost claim", historyFenced},
		{"a message is known after its content is stored", knows},
		{"a thread opened on a post of ours begins with that reply", openedOnPost},
	}
}

// read returns a message as read from the platform.
func read(id, content string) record.Read {
	m := said(id, content)
	m.SentAt = time.UnixMilli(1).UTC()
	return record.Read{Message: m, Metadata: m.Metadata.Bytes()}
}

// readHistory stores the read messages for a run.
func (f *fixture) readHistory(run *runs.Run, history runs.ThreadHistory, list ...record.Read) {
	f.Helper()
	f.must(f.Recorder.SetThreadHistory(f.ctx, f.claim(run.Thread), run, history, list))
}

// middle begins the first run of a thread, with its root and two replies read.
func middle(f *fixture) *runs.Run {
	f.Helper()
	f.say("a", triggers)
	run := f.begin(threadKey(1))
	f.readHistory(run, runs.ThreadHistory{Root: "C1/root", Earlier: 7}, read("C1/root", "root"), read("C1/r1", "r1"), read("C1/r2", "r2"))
	return run
}

func historyFirst(f *fixture) {
	run := middle(f)
	first := []string{"^root", "...7", "#r1", "#r2", ">a"}
	same(f, "the turn", f.transcript(run, wide), first)
	same(f, "after a restart", f.transcript(f.successor("second").begin(threadKey(1)), wide), first)
	f.claims = map[int64]*threads.Claim{}
	f.say("b", passive)
	f.commit(f.begin(threadKey(1)), answer("re a"))
	f.say("c", triggers)
	next := f.begin(threadKey(1))
	same(f, "the next turn", f.transcript(next, wide), append(first, "<re a", "#b", ">c"))
	same(f, "in a small window", f.transcript(next, runs.Window{Turns: 1, Bytes: 1000, Context: 20}), []string{"#b", ">c"})
	same(f, "the thread", f.lines(threadKey(1)), []string{"1 a", "2 root", "3 r1", "4 r2", "5 b", "6 re a", "7 c"})
	same(f, "origin", f.list(threadKey(1))[1].Origin, messages.FromContext)
}

func historyEditedMeanwhile(f *fixture) {
	run := f.tell("C1/a", triggers, nil).Begun
	f.change(threadKey(1), edited("C1/a", "A", "2"), triggers)
	f.readHistory(run, runs.ThreadHistory{Root: "C1/root"}, read("C1/root", "root"))
	same(f, "transcript", f.transcript(run, wide), []string{"^root", ">A"})
	f.message(threadKey(2), said("C1/b", "b"), triggers)
	run = f.begin(threadKey(2))
	f.change(threadKey(2), edited("C1/b", "B", "2"), triggers)
	f.readHistory(run, runs.ThreadHistory{Root: "C1/root"})
	same(f, "transcript without a history", f.transcript(run, wide), []string{">B"})
}

func historyOnce(f *fixture) {
	run := middle(f)
	same(f, "thread history of the run", *run.History, runs.ThreadHistory{Root: "C1/root", Earlier: 7, First: 2, Last: 4})
	f.readHistory(run, runs.ThreadHistory{Root: "C1/root", Gap: true}, read("C1/r3", "r3"))
	same(f, "thread history of the first run", *run.History, runs.ThreadHistory{Root: "C1/root", Earlier: 7, First: 2, Last: 4})
	same(f, "the thread", f.lines(threadKey(1)), []string{"1 a", "2 root", "3 r1", "4 r2"})
}

func historyEmpty(f *fixture) {
	f.say("a", triggers)
	run := f.begin(threadKey(1))
	f.readHistory(run, runs.ThreadHistory{Root: "C1/root"})
	same(f, "thread history of the run", run.History, nil)
	f.readHistory(run, runs.ThreadHistory{Root: "C1/root", Gap: true})
	same(f, "with a gap", *run.History, runs.ThreadHistory{Root: "C1/root", Gap: true})
}

func historyKnown(f *fixture) {
	f.say("p", passive)
	f.say("a", triggers)
	run := f.begin(threadKey(1))
	f.say("b", passive)
	f.readHistory(run, runs.ThreadHistory{Root: "C1/root"}, read("C1/root", "root"), read("C1/p", "p"), read("C1/r", "r"), read("C1/a", "a"), read("C1/b", "b"))
	same(f, "the turn", f.transcript(run, wide), []string{"^root", "#r", "#p", ">a"})
	same(f, "the thread", f.lines(threadKey(1)), []string{"1 p", "2 a", "3 b", "4 root", "5 r"})
	again := f.message(threadKey(1), said("C1/r", "r"), passive)
	same(f, "a later payload", again.Disposition, event.Duplicate)
	same(f, "and is", f.transcript(run, wide), []string{"^root", "#r", "#p", ">a"})
}

func historyInterrupted(f *fixture) {
	run := middle(f)
	f.say("b", triggers)
	f.leaves(run, runs.Unanswered{State: runs.Interrupted})
	next := f.begin(threadKey(1))
	same(f, "thread history of the next run", next.History, run.History)
	same(f, "the turn", f.transcript(next, wide), []string{"^root", "...7", "#r1", "#r2", ">a", ">b"})
}

func historyBegun(f *fixture) {
	run := middle(f)
	f.leaves(run, runs.Unanswered{State: runs.Canceled, Cause: "no"})
	f.exec(`UPDATE threads SET begun_seq = 0`) // as if every message of its turn had been deleted
	a := f.envelope(event.KindMessage, threadKey(1), "C1/b")
	accepted := f.accept(a)
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/b", "b")}, triggers)
	e.Begin = true
	result, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
	if result.Begun == nil {
		f.Fatalf("no run has begun")
	}
	same(f, "thread history of the run", result.Begun.History, run.History)
	same(f, "its turn", f.transcript(result.Begun, wide)[:4], []string{"^root", "...7", "#r1", "#r2"})
}

func historyQuiet(f *fixture) {
	run := middle(f)
	change := f.change(threadKey(1), edited("C1/r1", "@bot r1", "2"), mentions)
	same(f, "the edit", change.Result.Disposition, event.Updated)
	same(f, "a turn is due", change.TurnAt.IsZero(), true)
	reply := answer("re a")
	reply.Stale = "drop"
	same(f, "the reply", f.commit(run, reply).State, runs.Done)
}

func historyChanges(f *fixture) {
	run := middle(f)
	f.change(threadKey(1), edited("C1/r1", "r one", "2"), passive)
	f.change(threadKey(1), deleted("C1/r2"), passive)
	f.change(threadKey(1), deleted("C1/root"), passive)
	same(f, "the turn", f.transcript(run, wide), []string{"...7", "#r one", ">a"})
	f.change(threadKey(1), edited("C1/r1", "", "3"), passive)
	same(f, "the turn without the text", f.transcript(run, wide), []string{"...7", ">a"})
}

func historyRaised(f *fixture) {
	run := middle(f)
	again := f.message(threadKey(1), said("C1/r1", "r1"), triggers)
	same(f, "the later payload", again.Trigger, messages.TriggerRun)
	first := []string{"^root", "...7", "#r2", ">a"}
	same(f, "the turn", f.transcript(run, wide), first)
	f.commit(run, answer("re a"))
	same(f, "the next turn", f.transcript(f.begin(threadKey(1)), wide), append(first, "<re a", ">r1"))
}

func historyAwaited(f *fixture) {
	f.say("a", triggers)
	run := f.begin(threadKey(1))
	a := f.envelope(event.KindEdit, "", "C1/r")
	accepted := f.accept(a)
	same(f, "its thread", accepted.Thread, 0)
	f.readHistory(run, runs.ThreadHistory{Root: "C1/root"}, read("C1/r", "r"))
	same(f, "moved envelopes", len(f.next(run.Thread)), 1)
	same(f, "threads with intake", f.due(intake), []int64{run.Thread})
	f.record(run.Thread, accepted.ID, edited("C1/r", "r, edited", "2"), passive)
	same(f, "the turn", f.transcript(run, wide), []string{"#r, edited", ">a"})
	same(f, "threads with intake, afterwards", f.due(intake), nil)
}

func historyFenced(f *fixture) {
	f.say("a", triggers)
	run := f.begin(threadKey(1))
	lease := f.claim(run.Thread)
	f.successor("second").claim(run.Thread)
	f.fails("a thread history", f.Recorder.SetThreadHistory(f.ctx, lease, run, runs.ThreadHistory{Root: "C1/root"}, []record.Read{read("C1/root", "root")}), storage.ErrFenced)
	same(f, "the thread", f.lines(threadKey(1)), []string{"1 a"})
	same(f, "thread history of the run", run.History, nil)
}

func knows(f *fixture) {
	is := func(id string, posts bool) bool {
		known, err := f.Messages.Knows(f.ctx, workspace, id, posts)
		f.must(err)
		return known
	}
	f.say("a", passive)
	f.say("b", noted)
	f.exchange(threadKey(1), "C1/c", "c", "re c", "re c")
	f.deliver(threadKey(1), "C1/9")
	same(f, "a stored message", is("C1/a", false), true)
	same(f, "a noted message", is("C1/b", false), false)
	same(f, "a missing message", is("C1/x", true), false)
	same(f, "a post of ours", [2]bool{is("C1/9", false), is("C1/9", true)}, [2]bool{false, true})
	f.change(threadKey(1), deleted("C1/a"), passive)
	same(f, "a deleted message", is("C1/a", false), true)
}

func openedOnPost(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "hi", "Hello.", "Hello.")
	f.deliver(threadKey(1), "C1/9")
	m := said("C1/10", "why?")
	m.OpenedOn = "C1/9"
	f.message(threadKey(2), m, triggers)
	same(f, "the turn", f.transcript(f.begin(threadKey(2)), wide), []string{"+hi", "+Hello.", ">why?"})
}
