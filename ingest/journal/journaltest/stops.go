package journaltest

import (
	"slices"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

func stopPromises() []promise {
	return []promise{
		{"a stopped run ends without an answer, with a notice", stoppedRun},
		{"a worker writes nothing about a stopped run", stoppedRunIsFenced},
		{"messages that wait are due after a stop", stopLeavesTheNext},
		{"only an unfinished run can be stopped", stopAfterEnd},
		{"a command stops the run, and is answered", stopCommand},
		{"without a run, a command stops the turn that waits", stopCommandWaiting},
		{"a command for a new context hides what was before it", newCommand},
		{"a further attempt of a run has the context of the first", newCommandInRun},
		{"a command knows the work in its thread", statusCommand},
		{"the answer to a command fits the work in the thread, which may change while the answer is made", overtakenCommand},
		{"an edit carries out no command", editedCommand},
		{"a run gets the messages that its agent takes during it, once", joinedRun},
		{"a message that changes while the agent takes it", joinedLate},
	}
}

// stopNotice is the notice of a stop.
var stopNotice = outbox.Notice{Text: "Stopped.", Metadata: []byte(`{"k":1}`), Posts: []outbox.Post{{Channel: channel, Place: "1", Text: "Stopped."}}}

func (f *fixture) stop(run *runs.Run) {
	f.Helper()
	stopped, err := f.Runs.StopRun(f.ctx, run.ID, stopNotice)
	f.must(err)
	same(f, "stopped", [3]any{stopped.Thread, stopped.Agent, stopped.Owner}, [3]any{run.Thread, agent, "test"})
}

func stoppedRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.stop(run)
	unfinished, err := f.Runs.UnfinishedRun(f.ctx, run.Thread)
	f.must(err)
	same(f, "unfinished run", unfinished, "")
	same(f, "turns", f.due(turns), nil)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Stopped."})
	same(f, "asked", f.list(threadKey(1))[0].Asked, &messages.Asked{ID: run.ID, State: "cancelled", Error: "Stopped."})
	same(f, "post", f.delivery(threadKey(1)).Post.Text, "Stopped.")
	f.message(threadKey(1), said("C1/2", "and now?"), triggers)
	same(f, "asked next", contents(f.begin(threadKey(1)).Messages), []string{"and now?"})
}

func stoppedRunIsFenced(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run, post := f.begin(threadKey(1)), outbox.Post{Channel: channel, Place: "1", Text: "He"}
	preview, _, err := f.Runs.BeginPreview(f.ctx, f.claim(run.Thread), run, run.Previews, post, false, outbox.Send{Timeout: time.Second})
	f.must(err)
	_, err = f.Outbox.Sent(f.ctx, preview, "C1/9")
	f.must(err)
	f.must(f.Runs.MarkSigned(f.ctx, f.claim(run.Thread), run, outbox.Post{Channel: channel, Text: "C1/1"}, time.Second))
	f.stop(run)
	_, err = f.Runs.CommitReply(f.ctx, f.claim(run.Thread), run, answer("Hello.", "Hello."))
	f.fails("the reply", err, storage.ErrFenced)
	_, err = f.Runs.ChangePreview(f.ctx, f.claim(run.Thread), run, preview, outbox.Send{})
	f.fails("a change of the preview", err, storage.ErrFenced)
	_, err = f.Runs.EndAttempt(f.ctx, f.claim(run.Thread), run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	f.fails("a retry", err, storage.ErrFenced)
	same(f, "the notice takes over the preview", f.deliver(threadKey(1), "C1/9").Replaces.PlatformID, "C1/9")
	same(f, "the sign", f.deliver(threadKey(1), "").Kind, outbox.KindUnsign)
}

func stopLeavesTheNext(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "and?"), triggers)
	_, err := f.Runs.EndAttempt(f.ctx, f.claim(run.Thread), run, runs.Unanswered{At: f.clock.Now().Add(time.Hour), Taken: true})
	f.must(err)
	f.stop(run)
	same(f, "turns", f.due(turns), []int64{run.Thread})
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"and?"})
	f.fails("the later answer", f.Runs.AnswerRun(f.ctx, run.ID, late("")), runs.ErrEnded)
}

func stopAfterEnd(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.commit(run, answer("Hello."))
	_, err := f.Runs.StopRun(f.ctx, run.ID, stopNotice)
	f.fails("a stop after the end", err, runs.ErrEnded)
	_, err = f.Runs.StopRun(f.ctx, "no such run", stopNotice)
	f.fails("a stop of an unknown run", err, storage.ErrNotFound)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Hello."})
}

// commands is a policy by which a text after / is a command.
func commands(m *event.Message, look record.Look) record.Decision {
	command, ok := strings.CutPrefix(m.Content, "/")
	if !ok {
		return triggers(m, look)
	}
	return record.Decision{
		Trigger: messages.TriggerNone, Reason: event.ReasonCommand, Command: record.Command(command), Metadata: m.Metadata.Bytes(),
		Tell: &record.Tell{Message: m.ExternalID},
	}
}

// notice returns the notice of any decision.
func notice(t record.Tell) outbox.Notice {
	if t.Command == "" {
		n := outbox.NewNotice(event.Slack, t.Text)
		n.Posts = []outbox.Post{{Channel: channel, Place: "1", Text: t.Text, Asker: "U1", Alone: true}}
		return n
	}
	n := stopNotice
	if t.State.Run == "" {
		n.Posts = append(slices.Clone(n.Posts), outbox.Post{Channel: channel, Text: t.Message, Clears: true})
	}
	return n
}

func stopCommand(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	preview, _, err := f.Runs.BeginPreview(f.ctx, f.claim(run.Thread), run, run.Previews, outbox.Post{Channel: channel, Text: "He"}, false, outbox.Send{Timeout: time.Second})
	f.must(err)
	_, err = f.Outbox.Sent(f.ctx, preview, "C1/9")
	f.must(err)
	out := f.message(threadKey(1), said("C1/2", "/stop"), commands)
	same(f, "result", out.Result, event.Result{Disposition: event.Stored, Reason: event.ReasonCommand})
	same(f, "stopped, told", [2]any{out.Stopped, out.Told}, [2]any{run.ID, true})
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 /stop", "3 Stopped."})
	same(f, "asked", f.list(threadKey(1))[0].Asked, &messages.Asked{ID: run.ID, State: "cancelled", Error: "Stopped."})
	same(f, "the preview", f.deliver(threadKey(1), "").Kind, outbox.KindRemove)
	same(f, "post", f.delivery(threadKey(1)).Post.Text, "Stopped.")
	_, err = f.Runs.CommitReply(f.ctx, f.claim(run.Thread), run, answer("Hello."))
	f.fails("the reply", err, storage.ErrFenced)
	f.message(threadKey(1), said("C1/3", "again"), triggers)
	same(f, "asked next", contents(f.begin(threadKey(1)).Messages), []string{"again"})
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 /stop", "3 Stopped.", "4 again"})
}

func stopCommandWaiting(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	out := f.message(threadKey(1), said("C1/2", "/stop"), commands)
	same(f, "due", out.TurnDue.IsZero(), true)
	same(f, "turns", f.due(turns), nil)
	same(f, "state", f.list(threadKey(1))[0].Asked.State, "cancelled")
	same(f, "post, clearance", []outbox.Kind{f.deliver(threadKey(1), "").Kind, f.deliver(threadKey(1), "").Kind}, []outbox.Kind{outbox.KindPost, outbox.KindUnsign})
	f.message(threadKey(1), said("C1/3", "again"), triggers)
	same(f, "asked next", contents(f.begin(threadKey(1)).Messages), []string{"again"})
}

func newCommand(f *fixture) {
	seen := func(run *runs.Run) (seen [][]string) {
		turns, err := f.Runs.Transcript(f.ctx, run, runs.Window{Turns: 50, Bytes: 1000, Context: 20})
		f.must(err)
		for _, turn := range turns {
			if turn.Root != nil {
				turn.Context = append(turn.Context, *turn.Root)
			}
			seen = append(seen, slices.Concat(contents(turn.Context), contents(turn.Messages)))
		}
		return seen
	}
	f.message(threadKey(1), said("C1/1", "old aside"), passive)
	f.exchange(threadKey(1), "C1/2", "old question", "old answer")
	f.message(threadKey(1), said("C1/3", "going"), triggers)
	going := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/4", "waits"), triggers)
	f.message(threadKey(1), said("C1/5", "/new"), commands)
	same(f, "seen by the run before", seen(going), [][]string{{"old aside", "old question"}, {"going"}})
	f.commit(going, answer("late"))
	f.message(threadKey(1), said("C1/6", "aside"), passive)
	waited := f.mayBegin(threadKey(1), true)
	same(f, "seen by the turn that waited", seen(waited), [][]string{{"aside", "waits"}})
	f.commit(waited, answer("yes"))
	run := f.tell("C1/7", triggers, nil).Begun
	same(f, "seen by the next turn", seen(run), [][]string{{"C1/7"}})
	same(f, "the context's begin", run.ContextFrom > 0 && run.ContextFrom == waited.ContextFrom, true)
}

func newCommandInRun(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "old question", "old answer")
	f.message(threadKey(1), said("C1/2", "/new"), commands)
	f.exchange(threadKey(1), "C1/3", "question", "answer")
	f.message(threadKey(1), said("C1/4", "going"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/5", "/new"), commands)
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	again := f.begin(threadKey(1))
	same(f, "the context's begin", again.ContextFrom, run.ContextFrom)
	same(f, "turns", f.turnsOf(again, 50), []string{"|question|answer", "|going|"})
}

func statusCommand(f *fixture) {
	status := func(id string) (state record.ThreadState) {
		f.commanded(id, "/status", func(s record.ThreadState) { state = s })
		return state
	}
	same(f, "at first", status("C1/0").Run, "")
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	same(f, "a turn waits", status("C1/2").Waiting, 1)
	run := f.begin(threadKey(1))
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	f.must(f.Runs.TakeRun(f.ctx, f.claim(run.Thread), run, true))
	f.message(threadKey(1), said("C1/3", "and?"), triggers)
	same(f, "during a run", status("C1/4"), record.ThreadState{Run: run.ID, Agent: agent, BegunAt: run.BegunAt, Attempts: 1, Taken: true, Waiting: 1})
	f.must(f.Runs.AnswerRun(f.ctx, run.ID, late("Hello.")))
	same(f, "after a later answer", status("C1/5").Taken, false)
}

// commanded records a command, and calls made with each state of the thread for which its answer is made.
func (f *fixture) commanded(id, text string, made func(record.ThreadState)) {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), id))
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said(id, text)}, commands)
	e.Notice = func(t record.Tell) outbox.Notice {
		made(t.State)
		return notice(t)
	}
	_, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
}

func overtakenCommand(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	var working []string
	f.commanded("C1/2", "/stop", func(s record.ThreadState) {
		if working = append(working, s.Run); s.Run != "" {
			f.commit(run, answer("Hello.")) // no transaction is open
		}
	})
	same(f, "runs at the answers", working, []string{run.ID, ""})
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Hello.", "3 /stop", "4 Stopped."})
	same(f, "post, clearance", []outbox.Kind{f.deliver(threadKey(1), "").Kind, f.deliver(threadKey(1), "").Kind}, []outbox.Kind{outbox.KindPost, outbox.KindUnsign})
	states := 0
	f.commanded("C1/3", "/status", func(record.ThreadState) {
		f.message(threadKey(1), said("C1/4", "and?"), triggers)
		states++
	})
	same(f, "states of which a status tells", states, 1)
}

func editedCommand(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "aside"), passive)
	out := f.change(threadKey(1), edited("C1/2", "/stop", "1"), commands)
	same(f, "stopped", out.Stopped, "")
	same(f, "result", f.commit(run, answer("Hello.")).State, runs.Done)
}

// join gives the run the messages that may join it, and returns them.
func (f *fixture) join(run *runs.Run) []messages.Message {
	f.Helper()
	joined, err := f.Runs.Joinable(f.ctx, run)
	f.must(err)
	for i := range joined {
		for range 2 { // the outcome of the first call may be unknown
			f.must(f.Runs.JoinRun(f.ctx, f.claim(run.Thread), run, &joined[i]))
		}
	}
	return joined
}

func joinedRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	join := func() []string { return contents(f.join(run)) }
	same(f, "joined at first", join(), []string{})
	f.message(threadKey(1), said("C1/2", "and?"), triggers)
	f.message(threadKey(1), said("C1/3", "aside"), passive)
	same(f, "joined", join(), []string{"and?"})
	f.message(threadKey(1), asks("C1/4", "alone", "run-1"), triggers)
	same(f, "joined again", join(), []string{})
	f.message(threadKey(1), said("C1/5", "gone"), triggers)
	same(f, "joined at last", join(), []string{"gone"})
	f.change(threadKey(1), deleted("C1/5"), nil)
	same(f, "after a delete", join(), []string{})
	f = f.successor("after")
	run = f.begin(threadKey(1))
	same(f, "messages of the resumed run", contents(run.Messages), []string{"hi", "and?"})
	reply := answer("both")
	reply.Stale = "rerun"
	f.message(threadKey(1), said("C1/1", "hi"), triggers) // a duplicate
	same(f, "a reply is stale for the passive message only", f.commit(run, reply).State, runs.Unfinished)
	ended := f.commit(f.begin(threadKey(1)), answer("both"))
	same(f, "more", ended.More, true)
	same(f, "a message with an id for its run", contents(f.begin(threadKey(1)).Messages), []string{"alone"})
	f.fails("after the end", f.Runs.JoinRun(f.ctx, f.claim(run.Thread), run, &run.Messages[0]), storage.ErrFenced)
}

// joinedLate changes messages while the agent takes them.
func joinedLate(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "gone"), triggers)
	f.message(threadKey(1), said("C1/3", "and?"), triggers)
	taken, err := f.Runs.Joinable(f.ctx, run)
	f.must(err)
	f.change(threadKey(1), deleted("C1/2"), nil)
	f.change(threadKey(1), edited("C1/3", "and then?", "1"), triggers)
	join := func(m *messages.Message) { f.must(f.Runs.JoinRun(f.ctx, f.claim(run.Thread), run, m)) }
	join(&taken[0])
	join(&taken[1])
	reply := answer("both")
	reply.Stale = "rerun"
	same(f, "a reply to the text before the edit", f.commit(run, reply).State, runs.Unfinished)
	run = f.begin(threadKey(1))
	same(f, "messages", contents(run.Messages), []string{"hi", "and then?"})
	f.message(threadKey(1), said("C1/4", "more"), triggers)
	taken, err = f.Runs.Joinable(f.ctx, run)
	f.must(err)
	f.change(threadKey(1), deleted("C1/1"), nil)
	f.change(threadKey(1), deleted("C1/3"), nil)
	join(&taken[0])
	same(f, "the run without its messages", f.commit(run, reply).State, runs.Canceled)
	same(f, "asked next", contents(f.begin(threadKey(1)).Messages), []string{"more"})
}
