package journaltest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

func runPromises() []promise {
	return []promise{
		{"waiting messages join one turn", coalesced},
		{"without coalescing, each message is a turn", eachItsTurn},
		{"a turn waits for further messages, up to a limit", coalescing},
		{"a run without a wait begins with its message", begunWithMessage},
		{"a run with a wait does not begin with its message", notBegunWithMessage},
		{"the run of an ended process resumes under its id", resumed},
		{"a retried run is due later, and its claim is not counted", retried},
		{"claims that end while a process works on the run are counted", claimsOfRun},
		{"a failed run ends with a notice, and the next turn runs", failed},
		{"an interrupted run gives its messages to the next", interrupted},
		{"an interrupted run stays in the trace of its first message", firstOfInterrupted},
		{"a cancelled run leaves its block to the next run if all its messages were deleted", canceled},
		{"turns are due by agent", dueByAgent},
		{"turns of removed agents go to an heir", orphans},
		{"a run that waits for the later answer of a removed agent goes to an heir at once", orphanedRun},
		{"a run that begins to wait for the later answer of a removed agent goes to an heir at once", orphanedRequest},
		{"if another node may know the agent, its turns go to an heir after a while", orphansOfAll},
		{"a turn that begins during the search for orphans is none", orphansBeside},
	}
}

func coalesced(f *fixture) {
	for i, text := range []string{"a", "b", "c"} {
		f.message(threadKey(1), said(fmt.Sprintf("C1/%d", i), text), triggers)
	}
	run := f.begin(threadKey(1))
	same(f, "asked", contents(run.Messages), []string{"a", "b", "c"})
	same(f, "why", each(run.Messages, func(m messages.Message) string { return m.Reason }), []string{"mention", "mention", "mention"})
	same(f, "block", [2]int64{run.ContextAfter, run.BaseSeq}, [2]int64{0, 3})
	f.message(threadKey(1), said("C1/9", "d"), triggers)
	f.commit(run, answer("abc"))
	run = f.begin(threadKey(1))
	same(f, "asked next", contents(run.Messages), []string{"d"})
	same(f, "block", [2]int64{run.ContextAfter, run.BaseSeq}, [2]int64{3, 5})
}

func eachItsTurn(f *fixture) {
	for i, text := range []string{"a", "b", "c"} {
		f.message(threadKey(1), said(fmt.Sprintf("C1/%d", i), text), triggers)
	}
	for _, text := range []string{"a", "b", "c"} {
		run := f.mayBegin(threadKey(1), true)
		same(f, "asked", contents(run.Messages), []string{text})
		f.commit(run, answer("re "+text))
	}
	same(f, "turns", f.due(turns), nil)
}

func coalescing(f *fixture) {
	say := func(id string) {
		accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), id))
		e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said(id, id)}, triggers)
		e.Coalesce, e.CoalesceMax = 500*time.Millisecond, 1200*time.Millisecond
		result, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
		f.must(err)
		same(f, "due", result.TurnAt.After(f.clock.Now()), true)
	}
	begun := f.clock.Now()
	say("C1/1")
	for _, id := range []string{"C1/2", "C1/3"} {
		f.clock.advance(400 * time.Millisecond)
		say(id)
		same(f, "turns", f.due(turns), nil)
		if f.mayBegin(threadKey(1), false) != nil {
			f.Fatalf("a run began too early")
		}
	}
	f.clock.advance(400 * time.Millisecond)
	same(f, "waited", f.clock.Now().Sub(begun), 1200*time.Millisecond)
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"C1/1", "C1/2", "C1/3"})
}

// tell accepts and records a message while the agent has room for a run.
func (f *fixture) tell(id string, decide policy, change func(*record.Entry)) record.Result {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), id))
	told := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said(id, id)}, decide)
	told.Begin = true
	if change != nil {
		change(&told)
	}
	result, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), told)
	f.must(err)
	return result
}

func begunWithMessage(f *fixture) {
	f.message(threadKey(1), said("C1/0", "before"), passive)
	run := f.tell("C1/1", triggers, nil).Begun
	if run == nil {
		f.Fatalf("no run began")
	}
	same(f, "asked", contents(run.Messages), []string{"C1/1"})
	same(f, "block", [2]int64{run.ContextAfter, run.BaseSeq}, [2]int64{0, 2})
	next := f.successor("second")
	same(f, "turns during the hand-over", next.due(turns), nil)
	f.clock.advance(time.Second)
	same(f, "turns", next.due(turns), []int64{run.Thread})
	again := next.begin(threadKey(1))
	same(f, "run", again.ID, run.ID)
	same(f, "messages of the second run", again.Messages[0].Row, run.Messages[0].Row)
	same(f, "result", next.commit(again, answer("Hello.")).State, runs.Done)
	same(f, "turns left", next.due(turns), nil)
	same(f, "the next block", next.tell("C1/2", triggers, nil).Begun.ContextAfter, int64(2))
}

func notBegunWithMessage(f *fixture) {
	begun := func(o record.Result) bool { return o.Begun != nil }
	same(f, "a passive message", begun(f.tell("C1/1", passive, nil)), false)
	same(f, "a coalescing message", begun(f.tell("C1/2", triggers, func(e *record.Entry) { e.Coalesce = time.Second })), false)
	same(f, "after a waiting message", begun(f.tell("C1/3", triggers, nil)), false)
	f.clock.advance(time.Second)
	run := f.begin(threadKey(1))
	same(f, "asked", contents(run.Messages), []string{"C1/2", "C1/3"})
	same(f, "during another run", begun(f.tell("C1/4", triggers, nil)), false)
	f.commit(run, answer("Hello."))
	f.commit(f.begin(threadKey(1)), answer("Hello again."))
	first := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/5"))
	f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/6"))
	told := entry(first.ID, event.Event{Kind: event.KindMessage, Message: said("C1/5", "C1/5")}, triggers)
	told.Begin = true
	result, err := f.Recorder.Record(f.ctx, f.claim(first.Thread), told)
	f.must(err)
	same(f, "before all envelopes are recorded", begun(result), false)
}

func resumed(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	first := f.begin(threadKey(1))
	next := f.successor("second")
	same(f, "turns", next.due(turns), []int64{first.Thread})
	second := next.begin(threadKey(1))
	same(f, "run", second.ID, first.ID)
	same(f, "asked", contents(second.Messages), []string{"hi"})
	same(f, "block", [2]int64{second.ContextAfter, second.BaseSeq}, [2]int64{first.ContextAfter, first.BaseSeq})
	_, err := f.Runs.CommitReply(f.ctx, f.claim(first.Thread), first, answer("late"))
	f.fails("reply of the first process", err, storage.ErrFenced)
	same(f, "result", next.commit(second, answer("Hello.")).State, runs.Done)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Hello."})
	_, err = next.Runs.CommitReply(f.ctx, next.claim(first.Thread), second, answer("again"))
	f.fails("a second reply", err, storage.ErrFenced)
}

func retried(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	at := f.clock.Now().Add(time.Second)
	f.leaves(run, runs.Unanswered{At: at, Failed: true})
	same(f, "turns", f.due(turns), nil)
	f.clock.advance(time.Second)
	again := f.begin(threadKey(1))
	same(f, "run", again.ID, run.ID)
	same(f, "attempts", again.Attempts, 1)
	same(f, "not before", again.NotBefore, at)
}

func claimsOfRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	same(f, "at first", f.begin(threadKey(1)).Claims, 0)
	same(f, "under the same claim", f.begin(threadKey(1)).Claims, 0)
	f.node("idle").claim(f.thread(threadKey(1)))
	run := f.node("two").begin(threadKey(1))
	same(f, "after a process that worked on it, and one that did not", run.Claims, 1)
	three := f.node("three")
	same(f, "after two processes", three.begin(threadKey(1)).Claims, 2)
	three.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	four := f.node("four")
	suspect, err := four.Runs.BeginRun(f.ctx, four.claim(run.Thread), agent, false, func(*runs.Run) bool { return false }, 2)
	f.must(err)
	same(f, "after a retry", suspect.Claims, 2)
	same(f, "after a process that did not work on the suspect", f.node("five").begin(threadKey(1)).Claims, 2)
	same(f, "after one that did", f.node("six").begin(threadKey(1)).Claims, 3)
}

func failed(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "ho"), triggers)
	f.fail(run, "Sorry.")
	same(f, "notice", f.delivery(threadKey(1)).Post.Text, "Sorry.")
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 ho", "3 Sorry."})
	same(f, "asked next", contents(f.begin(threadKey(1)).Messages), []string{"ho"})
}

func interrupted(f *fixture) {
	f.message(threadKey(1), said("C1/0", "before"), passive)
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "no, ho"), triggers)
	f.leaves(run, runs.Unanswered{State: runs.Interrupted})
	next := f.begin(threadKey(1))
	same(f, "asked", contents(next.Messages), []string{"hi", "no, ho"})
	same(f, "a run of its own", next.ID != run.ID, true)
	same(f, "block", [2]int64{next.ContextAfter, next.BaseSeq}, [2]int64{0, 3})
}

// firstOf returns the content of the message whose trace has a run; empty for none.
func (f *fixture) firstOf(run string) string {
	f.Helper()
	first, err := f.Listing.FirstOf(f.ctx, run)
	if errors.Is(err, storage.ErrNotFound) {
		return ""
	}
	f.must(err)
	for _, m := range f.list(threadKey(1)) {
		if m.UUID == first.UUID {
			return m.Content
		}
	}
	return "unknown"
}

func firstOfInterrupted(f *fixture) {
	f.exchange(threadKey(1), "C1/0", "before", "Yes.")
	f.clock.advance(time.Second)
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.message(threadKey(1), said("C1/2", "gone"), triggers)
	one := f.begin(threadKey(1))
	f.change(threadKey(1), deleted("C1/2"), nil)
	f.clock.advance(time.Second)
	late := said("C1/3", "sent earlier, and late")
	late.SentAt = f.clock.Now().Add(-time.Hour)
	f.message(threadKey(1), late, triggers)
	same(f, "while it goes on", f.firstOf(one.ID), "hi")
	f.leaves(one, runs.Unanswered{State: runs.Interrupted})
	same(f, "while its messages wait", f.firstOf(one.ID), "hi")
	two := f.begin(threadKey(1))
	same(f, "asked", contents(two.Messages), []string{late.Content, "hi"})
	same(f, "while the next run goes on", []string{f.firstOf(one.ID), f.firstOf(two.ID)}, []string{"hi", late.Content})
	f.leaves(two, runs.Unanswered{State: runs.Interrupted})
	f.commit(f.begin(threadKey(1)), answer("Hello."))
	f.exchange(threadKey(1), "C1/4", "after", "Yes.")
	same(f, "when all have ended", []string{f.firstOf(one.ID), f.firstOf(two.ID), f.firstOf("no such run")}, []string{"hi", late.Content, ""})
}

func canceled(f *fixture) {
	f.message(threadKey(1), said("C1/0", "before"), passive)
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.change(threadKey(1), deleted("C1/1"), nil)
	f.leaves(run, runs.Unanswered{State: runs.Canceled, Cause: "every message was deleted"})
	same(f, "turns", f.due(turns), nil)
	f.message(threadKey(1), said("C1/2", "ho"), triggers)
	next := f.begin(threadKey(1))
	same(f, "block", [2]int64{next.ContextAfter, next.BaseSeq}, [2]int64{0, 3})

	f.leaves(next, runs.Unanswered{State: runs.Canceled, Cause: "stopped"})
	f.message(threadKey(1), said("C1/3", "hum"), triggers)
	last := f.begin(threadKey(1))
	same(f, "asked after a stop", contents(last.Messages), []string{"hum"})
	same(f, "block after a stop", last.ContextAfter, next.BaseSeq)
}

func dueByAgent(f *fixture) {
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, triggers)
	e.Agent = "slow"
	_, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
	f.message(threadKey(2), said("C1/2", "ho"), triggers)
	same(f, "due", f.due(turns), []int64{f.thread(threadKey(2))})
	same(f, "due for the slow agent", f.due(strings.ReplaceAll(turns, "helper", "slow")), []int64{accepted.Thread})
}

// orphan creates a thread with a turn that waits for a removed agent.
func (f *fixture) orphan(key event.ThreadKey) int64 {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindMessage, key, ""))
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said(fmt.Sprint("C1/", accepted.ID), "hi")}, triggers)
	e.Agent = "gone"
	_, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
	return accepted.Thread
}

func orphans(f *fixture) {
	f.tell("C1/known", triggers, func(e *record.Entry) { e.Agent, e.Begin = "other", false })
	thread := f.orphan(threadKey(2))
	same(f, "due", f.due(turns), nil)
	f.must(f.Runs.AssignOrphans(f.ctx, []string{agent, "other"}, agent, time.Minute))
	same(f, "due", f.due(turns), []int64{thread})
}

func orphanedRun(f *fixture) {
	thread := f.orphan(threadKey(1))
	run, err := f.Runs.BeginRun(f.ctx, f.claim(thread), "gone", false, func(*runs.Run) bool { return false }, math.MaxInt64)
	f.must(err)
	f.leaves(run, runs.Unanswered{At: f.clock.Now().Add(24 * time.Hour), Taken: true})
	f.must(f.Runs.AssignOrphans(f.ctx, []string{agent, "gone"}, agent, time.Minute))
	same(f, "due while the agent is there", f.due(turns), nil)
	f.must(f.Runs.AssignOrphans(f.ctx, []string{agent}, agent, time.Minute))
	same(f, "due", f.due(turns), []int64{thread})
	again := f.begin(threadKey(1))
	same(f, "the run", again.ID, run.ID)
	same(f, "the heir has taken it, or waits", again.Taken || again.NotBefore.After(f.clock.Now()), false)
}

func orphanedRequest(f *fixture) {
	thread := f.orphan(threadKey(1))
	run, err := f.Runs.BeginRun(f.ctx, f.claim(thread), "gone", false, func(*runs.Run) bool { return false }, math.MaxInt64)
	f.must(err)
	f.must(f.Runs.AssignOrphans(f.ctx, []string{agent}, agent, time.Minute))
	f.leaves(run, runs.Unanswered{At: f.clock.Now().Add(24 * time.Hour), Taken: true})
	again := f.begin(threadKey(1))
	same(f, "the run", again.ID, run.ID)
	same(f, "the heir has taken it", again.Taken, false)
}

func orphansOfAll(f *fixture) {
	a, b := pair(f)
	assign := func() { f.must(b.Runs.AssignOrphans(f.ctx, []string{agent}, agent, 2*time.Minute)) }
	free, held := a.orphan(threadKey(1)), a.orphan(threadKey(2))
	f.clock.advance(2*time.Minute - time.Millisecond)
	a.claimAgain(held)
	assign()
	same(f, "before the turn is overdue", b.due(turns), nil)
	f.clock.advance(time.Millisecond)
	assign()
	same(f, "after a while", b.due(turns), []int64{free})
	f.clock.advance(time.Minute)
	assign()
	same(f, "after the thread's claim has ended", b.due(turns), []int64{free, held})
}

// claimAgain gives this process a claim of a thread for a minute.
func (f *fixture) claimAgain(thread int64) {
	f.Helper()
	f.exec(`UPDATE threads SET owner = 'test', lease_until = $1 WHERE id = $2`, f.clock.Now().Add(time.Minute).UnixMilli(), thread)
}

func orphansBeside(f *fixture) {
	a, b := pair(f)
	var threads []int64
	for i := range 3 {
		threads = append(threads, a.orphan(threadKey(i)))
	}
	f.clock.advance(2 * time.Minute)
	assign := func() error { return b.Runs.AssignOrphans(f.ctx, []string{agent}, agent, 2*time.Minute) }
	f.beside(func(tx storage.Tx) error {
		_, err := tx.Exec(`UPDATE threads SET owner = 'a', lease_until = $1 WHERE id = $2`, f.clock.Now().Add(time.Minute).UnixMilli(), threads[1])
		return err
	}, func(storage.Tx) error { return nil }, assign)
	same(f, "except the turn that began meanwhile", b.count("threads WHERE agent = 'helper'"), 2)
}

func replyPromises() []promise {
	return []promise{
		{"a reply whose commit was unclear is committed once, with its posts", committedUnclearly},
		{"a repeated commit begins no delivery that a worker has begun", begunByWorker},
		{"a reply, its posts and its events are committed together", committed},
		{"a reply to deleted messages is withdrawn", withdrawn},
		{"a reply is committed if its turn has messages left", partlyDeleted},
		{"an interruptible reply yields to a newer message", givesWay},
		{"a stale reply is requested again at most twice, with the newer messages", rerun},
		{"a repeated commit of a stale reply changes nothing", rerunOnce},
		{"a run that is asked again counts the messages that it has then, and leaves no turn", rerunCounts},
		{"a run does not inherit the attempts of the one before", freshRun},
		{"an edit that the agent has not seen makes the reply stale", editMakesStale},
		{"an edit reports the run of its message", editNamesRun},
		{"a stale reply is dropped, and its reason is stored", dropped},
		{"a stale reply is sent, and the messages that its agent saw are recorded", staleSent},
		{"only a newer message that takes part makes a reply stale", notStale},
		{"a deleted message, and one that the run could not take, do not interrupt it", notInterrupted},
	}
}

func committed(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.clock.advance(3 * time.Second)
	reply := answer("one two", "one", "two")
	reply.AnsweredAt = f.clock.Now().Add(-time.Second)
	var latency time.Duration
	reply.Metadata = func(id string, took time.Duration) []byte {
		latency = took
		return fmt.Appendf(nil, `{"message_id":%q}`, id)
	}
	reply.Events = []stream.Message{
		{Type: stream.Thought, Text: "hm"}, {Type: stream.Answer, Text: "one two", Details: []byte(`{"a": 1}`), Final: true},
	}
	ended := f.commit(run, reply)
	same(f, "latency", latency, 3*time.Second)
	got := f.list(threadKey(1))[1]
	same(f, "message", got.Row, ended.Message.Row)
	same(f, "metadata", string(got.Metadata), fmt.Sprintf(`{"message_id":%q}`, got.ExternalID))
	same(f, "author", got.Author, messages.ByAgent)
	same(f, "run", got.Run, run.ID)
	same(f, "events", f.count("run_events"), 2)
	first := f.deliver(threadKey(1), "C1/8")
	second := f.deliver(threadKey(1), "C1/9")
	same(f, "posts", []string{first.Post.Text, second.Post.Text}, []string{"one", "two"})
	same(f, "keys", []string{first.Key, second.Key}, []string{outbox.Key(run.ID, 0), outbox.Key(run.ID, 1)})
}

func withdrawn(f *fixture) {
	f.message(threadKey(1), said("C1/0", "before"), passive)
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.change(threadKey(1), deleted("C1/1"), nil)
	same(f, "result", f.commit(run, answer("Hello.", "Hello.")), runs.EndResult{State: runs.Canceled})
	same(f, "deliveries", f.count("deliveries"), 0)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 before", "2 -"})
	same(f, "turns", f.due(turns), nil)
}

func partlyDeleted(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.message(threadKey(1), said("C1/2", "ho"), triggers)
	run := f.begin(threadKey(1))
	f.change(threadKey(1), deleted("C1/1"), nil)
	same(f, "asked after a restart", contents(f.successor("second").begin(threadKey(1)).Messages), []string{"ho"})
	delete(f.claims, run.Thread)
	same(f, "result", f.commit(run, answer("Hello.")).State, runs.Done)
}

func givesWay(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "not me"), passive)
	reply := answer("Hello.")
	reply.Interruptible = true
	f.message(threadKey(1), said("C1/3", "ho"), triggers)
	same(f, "result", f.commit(run, reply).State, runs.Interrupted)
	run = f.begin(threadKey(1))
	same(f, "asked", contents(run.Messages), []string{"hi", "ho"})
	same(f, "result", f.commit(run, reply).State, runs.Done)
}

func rerun(f *fixture) {
	f.message(threadKey(1), said("C1/0", "0"), triggers)
	reply := answer("Hello.", "Hello.")
	reply.Stale = "rerun"
	run := f.begin(threadKey(1))
	id, asked := run.ID, []string{"0"}
	for i, want := range []runs.State{runs.Unfinished, runs.Unfinished, runs.Done} {
		same(f, "asked", contents(run.Messages), asked)
		text := fmt.Sprint(i + 1)
		f.message(threadKey(1), said("C1/"+text, text), triggers)
		asked = append(asked, text)
		same(f, "result", f.commit(run, reply).State, want)
		run = f.begin(threadKey(1))
		same(f, "the same run", run.ID == id, want == runs.Unfinished)
	}
	same(f, "asked next", contents(run.Messages), []string{"3"})
	same(f, "replies", f.count("deliveries"), 1)
}

func rerunCounts(f *fixture) {
	reply := answer("Hello.")
	reply.Stale = "rerun"
	for n, left := range []bool{true, false} {
		thread := threadKey(n)
		id := func(name string) string { return fmt.Sprintf("C1/%d%s", n, name) }
		f.message(thread, said(id("hi"), "hi"), triggers)
		f.message(thread, said(id("gone"), "gone"), triggers)
		run := f.begin(thread)
		f.change(thread, deleted(id("gone")), nil)
		f.message(thread, said(id("aside"), "aside"), passive)
		f.message(thread, said(id("and"), "and?"), triggers)
		same(f, "stale", f.commit(run, reply).State, runs.Unfinished)
		run = f.begin(thread)
		same(f, "asked again", contents(run.Messages), []string{"hi", "and?"})
		if left {
			ended := f.commit(run, reply)
			same(f, "result", []any{ended.State, ended.More}, []any{runs.Done, false})
			continue
		}
		f.change(thread, deleted(id("hi")), nil)
		f.change(thread, deleted(id("and")), nil)
		same(f, "result without a message", f.commit(run, reply).State, runs.Canceled)
	}
}

// rerunOnce repeats an unclear commit of a reply that a newer message or an edit made
// stale.
func rerunOnce(f *fixture) {
	reply := answer("Hello.", "Hello.")
	reply.Stale = "rerun"
	for i, newer := range []func(thread event.ThreadKey){
		func(thread event.ThreadKey) { f.message(thread, said("C1/2", "ho"), triggers) },
		func(thread event.ThreadKey) { f.change(thread, edited("C1/11", "ho", "1"), triggers) },
	} {
		thread := threadKey(i)
		f.message(thread, said(fmt.Sprint("C1/1", i), "hi"), triggers)
		run := f.begin(thread)
		f.clock.advance(time.Second)
		newer(thread)
		for _, reply.Again = range []bool{false, true} {
			same(f, "result", f.commit(run, reply).State, runs.Unfinished)
			same(f, "reruns", f.begin(thread).Reruns, 1)
		}
		reply.Again = false
		same(f, "result of the rerun", f.commit(f.begin(thread), reply).State, runs.Done)
	}
}

func freshRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	run = f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "ho"), triggers)
	reply := answer("Hello.")
	reply.Stale = "rerun"
	same(f, "result", f.commit(run, reply).State, runs.Unfinished)
	f.commit(f.begin(threadKey(1)), reply)
	f.message(threadKey(1), said("C1/3", "hum"), triggers)
	run = f.begin(threadKey(1))
	same(f, "attempts and reruns", [2]int64{run.Attempts, run.Reruns}, [2]int64{0, 0})
}

func editMakesStale(f *fixture) {
	for policy, want := range map[string]runs.State{"send": runs.Done, "drop": runs.Dropped, "rerun": runs.Unfinished, "": runs.Interrupted} {
		id, reply := "C1/"+policy, answer("Hello.")
		reply.Stale, reply.Interruptible = cmp.Or(policy, "send"), policy == ""
		f.message(threadKey(1), said(id, "hi"), triggers)
		f.clock.advance(1e9)
		f.change(threadKey(1), edited(id, "ho", "1"), triggers) // before the run: the agent receives the new text
		run := f.begin(threadKey(1))
		same(f, "asked", contents(run.Messages), []string{"ho"})
		f.clock.advance(1e9)
		f.change(threadKey(1), edited(id, "hum", "2"), triggers)
		same(f, policy, f.commit(run, reply).State, want)
		if want == runs.Unfinished || want == runs.Interrupted {
			run = f.begin(threadKey(1))
			same(f, "asked again", contents(run.Messages), []string{"hum"})
			same(f, "and now", f.commit(run, reply).State, runs.Done)
		}
	}
	f.message(threadKey(2), said("C1/2", "hi"), triggers)
	run := f.begin(threadKey(2))
	f.clock.advance(1e9)
	f.change(threadKey(2), edited("C1/2", "ho", "1"), triggers)
	run.Fresh = false                                                           // its worker knows of the edit
	_, err := f.Runs.Transcript(f.ctx, run, runs.Window{Turns: 1, Bytes: 1000}) // the agent reads the current text
	f.must(err)
	reply := answer("Hello.")
	reply.Stale = "drop"
	same(f, "an edit seen by the agent", f.commit(run, reply).State, runs.Done)
}

func editNamesRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	same(f, "before the run", f.change(threadKey(1), edited("C1/1", "ho", "1"), triggers).Edited, "")
	run := f.begin(threadKey(1))
	same(f, "the run", f.change(threadKey(1), edited("C1/1", "hum", "2"), triggers).Edited, run.ID)
	same(f, "no edit", f.change(threadKey(1), edited("C1/1", "hum", "2"), triggers).Edited, "")
	f.message(threadKey(1), said("C1/2", "passing by"), passive)
	same(f, "another message", f.change(threadKey(1), edited("C1/2", "ha", "1"), passive).Edited, "")
}

func dropped(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "never mind"), passive)
	reply := answer("Hello.", "Hello.")
	reply.Stale, reply.Events = "drop", []stream.Message{{Type: stream.Answer, Text: "Hello."}}
	same(f, "result", f.commit(run, reply), runs.EndResult{State: runs.Dropped})
	same(f, "deliveries", f.count("deliveries"), 0)
	same(f, "events", f.count("run_events"), 1)
	same(f, "runs with their reason", f.count("runs WHERE state = 'dropped' AND error <> ''"), 1)
	same(f, "turns", f.due(turns), nil)
}

func staleSent(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "ho"), passive)
	same(f, "result", f.commit(run, answer("Hello.")).State, runs.Done)
	same(f, "freshness", f.list(threadKey(1))[2].Freshness, &messages.Freshness{Known: event.Known{BaseSeq: at(1), LatestSeenSeq: at(1)}, ServerSeq: 2})
}

func notStale(f *fixture) {
	for name, newer := range map[string]func(run *runs.Run){
		"a message of the run": func(run *runs.Run) {
			f.message(run.ThreadKey, said("C1/joins", "and?"), triggers)
			f.join(run)
		},
		"a deleted message": func(run *runs.Run) {
			f.message(run.ThreadKey, said("C1/gone", "no"), passive)
			f.change(run.ThreadKey, deleted("C1/gone"), nil)
		},
		"a passive message that no turn shows": func(run *runs.Run) {
			f.message(run.ThreadKey, said("C1/secret", "a secret"), secret(passive))
		},
		"a command and its notice": func(run *runs.Run) { f.message(run.ThreadKey, said("C1/status", "/status"), commands) },
	} {
		thread := event.ThreadKey("slack:acme:C1:" + name)
		f.message(thread, said("C1/before "+name, "listen"), passive)
		f.message(thread, said("C1/asks "+name, "hi"), triggers)
		run := f.begin(thread)
		newer(run)
		reply := answer("Hello.")
		reply.Stale = "drop"
		same(f, name, f.commit(run, reply).State, runs.Done)
	}
}

func notInterrupted(f *fixture) {
	f.message(threadKey(1), asks("C1/1", "alone", "run-1"), triggers)
	f.message(threadKey(1), said("C1/2", "earlier than the run"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/3", "aside"), passive)
	f.message(threadKey(1), said("C1/4", "gone"), triggers)
	f.change(threadKey(1), deleted("C1/4"), nil)
	reply := answer("Hello.")
	reply.Interruptible = true
	same(f, "result", f.commit(run, reply).State, runs.Done)
	run = f.begin(threadKey(1))
	same(f, "asked next", contents(run.Messages), []string{"earlier than the run"})

	f.message(threadKey(1), said("C1/5", "gone too"), triggers)
	f.change(threadKey(1), deleted("C1/5"), nil)
	f.message(threadKey(1), said("C1/6", "aside"), passive)
	f.message(threadKey(1), asks("C1/7", "alone again", "run-2"), triggers)
	again := answer("Hello.")
	again.Stale = "rerun"
	same(f, "a stale reply", f.commit(run, again).State, runs.Unfinished)
	run = f.begin(threadKey(1))
	same(f, "asked again", contents(run.Messages), []string{"earlier than the run"})
	same(f, "more", f.commit(run, answer("Hello.")).More, true)
	f.commit(f.begin(threadKey(1)), answer("Hello."))
	same(f, "turns", f.due(turns), nil)
}

func committedUnclearly(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	reply := answer("Hello.", "Hello.", "And more.")
	reply.Send = &outbox.Send{Timeout: time.Second}
	first := f.commit(run, reply)
	reply.Again = true
	again := f.commit(run, reply)
	same(f, "result", again.State, runs.Done)
	same(f, "reply", again.Message.ExternalID, first.Message.ExternalID)
	same(f, "begun", again.Begun.ID, first.Begun.ID)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Hello."})

	other := f.successor("second")
	other.claim(run.Thread)
	_, err := f.Runs.CommitReply(f.ctx, f.claim(run.Thread), run, reply)
	f.fails("after another node has claimed the thread", err, storage.ErrFenced)
}

// begunByWorker repeats an unclear commit while a worker's call is in progress: the second
// call of a delivery that the commit began, or the first of one that had to wait.
func begunByWorker(f *fixture) {
	reply := answer("Hello.", "Hello.")
	reply.Send = &outbox.Send{Timeout: 10 * time.Second}
	again := reply
	again.Again = true

	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.commit(run, reply)
	f.clock.advance(15 * time.Second)
	f.must(f.Outbox.Resend(f.ctx, f.delivery(threadKey(1)), f.clock.Now(), "the post had not arrived"))
	same(f, "begun before the second call", f.commit(run, again).Begun, nil)
	f.sending(f.delivery(threadKey(1)))
	same(f, "begun during the second call", f.commit(run, again).Begun, nil)

	f.exchange(threadKey(2), "C1/2", "a", "A", "A")
	f.message(threadKey(2), said("C1/3", "hi"), triggers)
	run = f.begin(threadKey(2))
	same(f, "begun behind another delivery", f.commit(run, reply).Begun, nil)
	f.clock.advance(time.Second)
	f.deliver(threadKey(2), "C1/4")
	f.sending(f.delivery(threadKey(2)))
	same(f, "begun during the first call", f.commit(run, again).Begun, nil)
}
