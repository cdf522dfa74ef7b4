package journaltest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/ingest/journal"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

func eventPromises() []promise {
	return []promise{
		{"events are stored while the run works, in one order for all its writers and attempts", eventsAppended},
		{"chunks are stored until the message of their activity or another attempt, and no longer than the run", chunksReplaced},
		{"the oldest messages of a run beyond its bound are removed when its readers have had them", oldEventsRemoved},
		{"a message that only repeats the reply is not stored", repeatsLeftOut},
		{"an ANSWER is stored before a last message that says more", answerBeforeLast},
		{"an ANSWER with another text, or of another workstream, is not the reply", otherAnswers},
		{"a run that has ended has no chunks, even if their removal failed", chunksLeftOver},
		{"the events of a run that failed have no last message", failedUnclosed},
		{"no other claim, and nobody after the end, adds events to a run", eventsFenced},
		{"another writer's repeated message is one, and its messages are bounded", eventsAddedOnce},
		{"readers of a run are woken by events and by its end", followersWoken},
		{"a run has the messages of its turn, its reply and its notice", runMessages},
	}
}

func thought(text string) stream.Message { return stream.Message{Type: stream.Thought, Text: text} }

func chunk(activity, text string) stream.Message {
	return stream.Message{Type: stream.StreamingChunk, Text: text, ActivityID: activity}
}

// append stores events of a run.
func (f *fixture) append(run *runs.Run, messages ...stream.Message) {
	f.Helper()
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, messages))
}

// events returns a run's events as "seq TYPE text", and its page.
func (f *fixture) events(run string) ([]string, runs.Page) {
	f.Helper()
	page, err := f.Runs.RunEvents(f.ctx, run, 0, 10_000)
	f.must(err)
	return each(page.Events, func(e runs.Event) string { return fmt.Sprintf("%d %s %s", e.Seq, e.Type, e.Text) }), page
}

// sameEvents fails the test if a run has other events.
func (f *fixture) sameEvents(run string, want ...string) runs.Page {
	f.Helper()
	got, page := f.events(run)
	same(f, "events", got, append([]string{}, want...))
	return page
}

// asked returns a run for a message of its own.
func (f *fixture) asked() *runs.Run {
	f.Helper()
	f.serial++
	f.message(threadKey(1), said(fmt.Sprint("C1/asked", f.serial), "hi"), triggers)
	return f.begin(threadKey(1))
}

func eventsAppended(f *fixture) {
	run := f.asked()
	plan := stream.Message{Type: stream.Plan, Workstream: "w2", ActivityID: "p", Details: []byte(`{"a": 1}`), Final: true}
	f.append(run, thought("a"), plan, stream.Message{Type: stream.Complete})
	f.must(f.Runs.AddEvents(f.ctx, run.ID, runs.Added{Messages: []stream.Message{thought("of another writer")}}))
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	run = f.begin(threadKey(1))
	f.append(run, thought("b"))
	page := f.sameEvents(run.ID, "1 THOUGHT a", "2 PLAN ", "3 THOUGHT of another writer", "4 THOUGHT b")
	same(f, "status", page.Status, runs.Status{
		ID: run.ID, ThreadID: run.ThreadID, Workspace: workspace, Platform: "slack", State: "running",
	})
	plan.Time = f.clock.Now().Add(time.Millisecond) // every event has a later time than the one before
	same(f, "plan", page.Events[1].Message, plan)
	later, err := f.Runs.RunEvents(f.ctx, run.ID, 1, 2)
	f.must(err)
	same(f, "a page", []int64{later.Events[0].Seq, later.Events[1].Seq, int64(len(later.Events))}, []int64{2, 3, 2})
	f.commit(run, answer("Hello."))
	next := f.asked()
	f.append(next, thought("c"))
	f.sameEvents(next.ID, "1 THOUGHT c")
}

func chunksReplaced(f *fixture) {
	run := f.asked()
	f.append(run, chunk("a", "He"), chunk("b", "hm"), chunk("a", "llo"))
	f.append(run, stream.Message{Type: stream.Thought, Text: "hmm", ActivityID: "b"}, chunk("a", "."))
	f.sameEvents(run.ID, "1 STREAMING_CHUNK He", "3 STREAMING_CHUNK llo", "4 THOUGHT hmm", "5 STREAMING_CHUNK .")
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	run = f.begin(threadKey(1))
	page := f.sameEvents(run.ID, "4 THOUGHT hmm", "6 THOUGHT The answer begins again.")
	same(f, "the activity", page.Events[1].ActivityID, "a")
	same(f, "the run's last event", run.EventSeq, 6)
	f.append(run, chunk("a/6", "Hel"))
	f.sameEvents(run.ID, "4 THOUGHT hmm", "6 THOUGHT The answer begins again.", "7 STREAMING_CHUNK Hel")
	f.commit(run, answer("Hello."))
	f.sameEvents(run.ID, "4 THOUGHT hmm", "6 THOUGHT The answer begins again.")

	run = f.asked()
	f.append(run, chunk("a", "Hel"))
	f.exec(`UPDATE threads SET run_seq = run_events + 20000 WHERE run_id = $1`, run.ID)
	f.append(run, chunk("a", "lo"), thought("hm"))
	f.sameEvents(run.ID, "1 STREAMING_CHUNK Hel", "20001 STREAMING_CHUNK lo", "20002 THOUGHT hm")
	f.clock.advance(2 * time.Minute)
	f.append(run, chunk("a", "lo"))
	f.sameEvents(run.ID, "20001 STREAMING_CHUNK lo", "20002 THOUGHT hm", "20003 STREAMING_CHUNK lo")
	f.leaves(run, runs.Unanswered{State: runs.Interrupted})
	run = f.begin(threadKey(1))
	f.append(run, chunk("a", "Hel"))
	f.fail(run, "sorry")
	same(f, "chunks", f.count("run_events WHERE type = 12"), 0)
}

func eventsAddedOnce(f *fixture) {
	run := f.asked()
	add := func(key string, most int64, messages ...stream.Message) error {
		return f.Runs.AddEvents(f.ctx, run.ID, runs.Added{Messages: messages, Key: key, Most: most})
	}
	half := stream.Message{Type: stream.Update, ActivityID: "a", Text: "half", Details: []byte(`{"n":1}`)}
	more, other := half, half
	more.Details, other.ActivityID = []byte(`{"n":2}`), "b"
	f.must(add("", 4, half, half, thought("hm"), thought("hm")))
	f.must(add("", 4, half, more))
	f.must(add("k", 5, chunk("c", "ha"), chunk("c", "ha")))
	f.must(add("k", 5, thought("not this")))
	f.fails("too many", add("", 5, other), runs.ErrManyEvents)
	f.must(add("", 0, other))
	f.sameEvents(run.ID, "1 UPDATE half", "2 THOUGHT hm", "3 UPDATE half", "4 STREAMING_CHUNK ha", "5 STREAMING_CHUNK ha", "6 UPDATE half")
}

func oldEventsRemoved(f *fixture) {
	run := f.asked()
	f.append(run, stream.Message{Type: stream.Warning, Text: "first"}, stream.Message{Type: stream.Error, Text: "second"})
	f.append(run, slices.Repeat([]stream.Message{thought("hm")}, 1600)...)
	events, page := f.events(run.ID)
	same(f, "events that a reader may not have", []int64{int64(len(events)), page.Dropped}, []int64{1602, 0})
	f.clock.advance(2 * time.Minute)
	f.append(run, thought("last"))
	reply := answer("Hello.")
	reply.Events = []stream.Message{{Type: stream.Answer, Text: "Hello.", Details: []byte(`{}`)}}
	f.commit(run, reply)
	events, page = f.events(run.ID)
	same(f, "kept", []int64{int64(len(events)), page.Dropped}, []int64{1001, 603})
	same(f, "the first ones", events[:3], []string{"1 WARNING first", "2 ERROR second", "606 THOUGHT hm"})
	same(f, "the last ones", events[999:], []string{"1603 THOUGHT last", "1604 ANSWER Hello."})
}

func repeatsLeftOut(f *fixture) {
	run := f.asked()
	reply := answer("Hello.")
	reply.Events = []stream.Message{
		thought("hm"), {Type: stream.Answer, Text: "Hello.", ActivityID: runs.AnswerActivity(run.ID)}, {Type: stream.Complete, Text: "Hello."},
	}
	f.commit(run, reply)
	page := f.sameEvents(run.ID, "1 THOUGHT hm")
	same(f, "stored ends", []bool{page.Answered, page.Closed}, []bool{false, false})
	same(f, "state", page.State, "done")
	same(f, "end, behind every event", page.EndedAt, f.clock.Now().Add(time.Millisecond))

	run = f.asked()
	reply.Events = []stream.Message{{Type: stream.Answer, Text: "Hello.", ActivityID: "its own"}, {Type: stream.Complete}}
	f.commit(run, reply)
	page = f.sameEvents(run.ID, "1 ANSWER Hello.")
	same(f, "stored ends", []bool{page.Answered, page.Closed}, []bool{true, false})

	for _, question := range []*runs.Question{{}, nil} { // without a question, another writer has added the message
		run = f.asked()
		reply.Question, reply.Events = question, []stream.Message{{Type: stream.RequestInput, Text: "Which one?"}}
		f.commit(run, reply)
		page = f.sameEvents(run.ID, "1 REQUEST_INPUT Which one?")
		same(f, "stored ends", []bool{page.Answered, page.Closed}, []bool{question != nil, false})
	}
}

func answerBeforeLast(f *fixture) {
	run := f.asked()
	reply := answer("Hello.")
	reply.Events = []stream.Message{{Type: stream.Answer, Text: "Hello."}, {Type: stream.Complete, Details: []byte(`{"a": 1}`)}}
	f.commit(run, reply)
	page := f.sameEvents(run.ID, "1 ANSWER Hello.", "2 COMPLETE ")
	same(f, "stored ends", []bool{page.Answered, page.Closed}, []bool{true, true})
}

func otherAnswers(f *fixture) {
	run := f.asked()
	says := func(workstream, text string) stream.Message {
		return stream.Message{Type: stream.Answer, Workstream: workstream, Text: text}
	}
	f.append(run, says("", "hi"), says("", "Hel"), says("w2", "Hello.")) // the first one repeats the question
	f.commit(run, answer("Hello."))
	page := f.sameEvents(run.ID, "1 ANSWER hi", "2 ANSWER Hel", "3 ANSWER Hello.")
	same(f, "answered", page.Answered, false)
}

func chunksLeftOver(f *fixture) {
	run := f.asked()
	f.append(run, chunk("a", "Hel"), thought("hm"))
	ctx, cancel := context.WithCancel(f.ctx)
	ending := journal.New(&observed{Engine: f.engine, written: cancel}, journal.Options{Node: "first", Now: f.clock.Now})
	_, err := ending.Runs.CommitReply(ctx, f.claim(run.Thread), run, answer("Hello."))
	f.must(err)
	same(f, "stored chunks", f.count("run_events WHERE type = 12"), 1)
	f.sameEvents(run.ID, "2 THOUGHT hm")
}

func failedUnclosed(f *fixture) {
	run := f.asked()
	events := []stream.Message{thought("hm"), {Type: stream.Complete, Details: []byte(`{"a": 1}`)}, {Type: stream.Complete, Workstream: "w2"}}
	f.leaves(run, runs.Unanswered{State: runs.Failed, Cause: "broken", Notice: outbox.Notice{Text: "sorry", Metadata: []byte(`{}`)}, Events: events})
	page := f.sameEvents(run.ID, "1 THOUGHT hm", "2 COMPLETE ")
	same(f, "closed", page.Closed, false)
	same(f, "state", page.State, "failed")
}

func eventsFenced(f *fixture) {
	run := f.asked()
	other := f.successor("second")
	other.append(other.begin(threadKey(1)), thought("hm"))
	keyed := runs.Added{Messages: []stream.Message{{Type: stream.Update, Text: "half"}}, Key: "k"}
	f.must(f.Runs.AddEvents(f.ctx, run.ID, keyed))
	f.fails("a fenced write", f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{thought("late")}), storage.ErrFenced)
	other.sameEvents(run.ID, "1 THOUGHT hm", "2 UPDATE half")
	other.commit(run, answer("Hello."))
	f.must(f.Runs.AddEvents(f.ctx, run.ID, keyed))
	f.fails("after the end", f.Runs.AddEvents(f.ctx, run.ID, runs.Added{Messages: []stream.Message{thought("late")}}), runs.ErrEnded)
	f.fails("an unknown run", f.Runs.AddEvents(f.ctx, "another", runs.Added{Messages: []stream.Message{thought("late")}}), storage.ErrNotFound)
	_, err := f.Runs.RunEvents(f.ctx, "another", 0, 1)
	f.fails("an unknown run", err, storage.ErrNotFound)
	f.sameEvents(run.ID, "1 THOUGHT hm", "2 UPDATE half")
}

func followersWoken(f *fixture) {
	run := f.asked()
	changed, stop := f.Runs.FollowRun(run.ID)
	woken := func(what string, want bool) {
		f.Helper()
		select {
		case <-changed:
			same(f, what, true, want)
		default:
			same(f, what, false, want)
		}
	}
	woken("before", false)
	f.append(run, thought("a"))
	f.append(run, thought("b"))
	woken("two events", true)
	woken("again", false)
	same(f, "words of another node", f.Heard("run "+run.ID), true)
	woken("words of another node", true)
	same(f, "other words", f.Heard("look"), false)
	f.commit(run, answer("Hello."))
	woken("the end", true)
	stop()
	next := f.asked()
	changed, stop = f.Runs.FollowRun(next.ID)
	f.append(next, chunk("a", "Hel"))
	woken("a chunk", true)
	_, err := f.Runs.StopRun(f.ctx, next.ID, outbox.Notice{Text: "Stopped.", Metadata: []byte(`{}`)})
	f.must(err)
	woken("a stop", true)
	f.sameEvents(next.ID)
	same(f, "chunks of a stopped run", f.count("run_events WHERE type = 12"), 0)
	stop()
	next = f.asked()
	changed, stop = f.Runs.FollowRun(next.ID)
	f.append(next, chunk("a", "Hel"))
	woken("a chunk", true)
	f.message(threadKey(1), said("C1/stop", "/stop"), commands)
	woken("a command", true)
	same(f, "chunks of a stopped run", f.count("run_events WHERE type = 12"), 0)
	stop()
	f.Heard("run " + run.ID)
	woken("stopped", false)
}

func runMessages(f *fixture) {
	messages := func(run string) []string {
		list, err := f.Runs.RunMessages(f.ctx, run)
		f.must(err)
		return each(list, func(m messages.Message) string { return string(m.Author) + " " + m.Content })
	}
	f.message(threadKey(1), said("C1/1", "gone"), triggers)
	f.message(threadKey(1), said("C1/2", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.change(threadKey(1), deleted("C1/1"), nil)
	f.commit(run, answer("Hello."))
	same(f, "answered", messages(run.ID), []string{"human hi", "agent Hello."})
	run = f.asked()
	f.fail(run, "sorry")
	same(f, "failed", messages(run.ID), []string{"human hi", "system sorry"})
}
