package journaltest

import (
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
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

func workstreamPromises() []promise {
	return []promise{
		{"a launch is stored once, for a run that works", launches},
		{"the number and the depth of workstreams are bounded", workstreamBounds},
		{"a workstream is due at its launch, and when a run of its thread has ended", workstreamDue},
		{"a step is taken once, and not if something has happened meanwhile", workstreamSteps},
		{"a workstream does not end by itself while a message waits", workstreamEndsIdle},
		{"the run that launched a workstream has the messages of its runs, while it goes on", workstreamMessages},
		{"the progress of a workstream is what its run tells of", workstreamProgress},
		{"a workstream is locked after the thread of its parent", workstreamLocks},
		{"a stop of a workstream ends its run and what waits", workstreamStops},
		{"a run that ends without an answer takes its workstreams and their reports with it, however it ends", endsWithChildren},
		{"a message behind the end of a workstream begins no run", workstreamEndStands},
		{"a report that a run has answered stays in the later inputs", reportsStay},
		{"what is said about workstreams makes no reply stale", workstreamsMakeNothingStale},
		{"the files of a run are its own and those of its workstreams, unless they are apart", artifacts},
		{"a workstream that has ended changes no more, and is removed with its run", workstreamEnds},
	}
}

// launch launches a workstream of a run.
func (f *fixture) launch(run, id string, bounds workstreams.Bounds) (workstreams.Workstream, error) {
	return f.Workstreams.Launch(f.ctx, workstreams.Workstream{ID: id, Run: run, Agent: agent, Task: "do it", DeadlineAt: f.clock.Now().Add(time.Minute)}, bounds)
}

var fewWorkstreams = workstreams.Bounds{Max: 2, Depth: 1}

// parent begins a run that may have workstreams.
func (f *fixture) parent() string {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	return f.begin(threadKey(1)).ID
}

// dueWorkstream returns the workstream that is due; the test fails if there is not exactly one.
func (f *fixture) dueWorkstream() *workstreams.Due {
	f.Helper()
	list, err := f.Workstreams.DueWorkstreams(f.ctx, []string{workspace}, 10)
	f.must(err)
	if len(list) != 1 {
		f.Fatalf("%d workstreams are due", len(list))
	}
	return &list[0]
}

// settle takes a step, and reports whether it was taken.
func (f *fixture) settle(d *workstreams.Due, next workstreams.Step) bool {
	f.Helper()
	taken, err := f.Workstreams.Settle(f.ctx, d, next)
	f.must(err)
	return taken
}

func launches(f *fixture) {
	run := f.parent()
	first, err := f.launch(run, "w1", fewWorkstreams)
	f.must(err)
	f.clock.advance(time.Second)
	again, err := f.launch(run, "w1", fewWorkstreams)
	f.must(err)
	same(f, "a repetition", again, first)
	same(f, "the place of its parent", []string{string(first.Of.Thread), first.Of.Workspace, first.Asker}, []string{string(threadKey(1)), workspace, agent})
	f.commit(f.begin(threadKey(1)), answer("hello"))
	_, err = f.launch(run, "w2", fewWorkstreams)
	same(f, "of a run that has ended", errors.Is(err, storage.ErrNotFound), true)
	list, err := f.Workstreams.WorkstreamsOf(f.ctx, run)
	f.must(err)
	same(f, "workstreams", list, []workstreams.Workstream{first})
}

func workstreamBounds(f *fixture) {
	run := f.parent()
	for _, id := range []string{"w1", "w2"} {
		_, err := f.launch(run, id, fewWorkstreams)
		f.must(err)
	}
	_, err := f.launch(run, "w3", fewWorkstreams)
	same(f, "a third one", errors.Is(err, workstreams.ErrTooMany), true)
	f.message(event.WorkstreamThread("w1"), said("C1/2", "do it"), triggers)
	below := f.begin(event.WorkstreamThread("w1")).ID
	_, err = f.launch(below, "w4", fewWorkstreams)
	same(f, "a second generation", errors.Is(err, workstreams.ErrTooDeep), true)
	_, err = f.launch(below, "w4", workstreams.Bounds{Max: 1, Depth: 2})
	f.must(err)
}

func workstreamDue(f *fixture) {
	_, err := f.launch(f.parent(), "w1", fewWorkstreams)
	f.must(err)
	d := f.dueWorkstream()
	same(f, "idle before its task", d.Idle(), false)
	same(f, "taken", f.settle(d, workstreams.Step{State: workstreams.Running, Said: 1, DueAt: f.clock.Now().Add(time.Hour)}), true)
	thread := event.WorkstreamThread("w1")
	f.message(thread, said("C1/2", "do it"), triggers)
	run := f.begin(thread)
	list, err := f.Workstreams.DueWorkstreams(f.ctx, []string{workspace}, 10)
	f.must(err)
	same(f, "due during the run", len(list), 0)
	f.commit(run, answer("42"))
	list, err = f.Workstreams.DueWorkstreams(f.ctx, []string{"other"}, 10)
	f.must(err)
	same(f, "due in another workspace", len(list), 0)
	d = f.dueWorkstream()
	same(f, "idle after its run", d.Idle(), true)
	same(f, "its last run", d.Last, workstreams.Last{Run: run.ID, State: "done"})
	same(f, "its replies", []any{len(d.Replies), d.Replies[0].Run, d.Replies[0].Text}, []any{1, run.ID, "42"})
	f.message(thread, said("C1/3", "and more"), triggers)
	f.commit(f.begin(thread), answer(strings.Repeat("ü", workstreams.MaxReply+1)))
	d = f.dueWorkstream()
	same(f, "a long reply", []any{len(d.Replies), len(d.Replies[1].Text), d.Replies[1].Chars}, []any{2, 2 * workstreams.MaxReply, int64(workstreams.MaxReply + 1)})
	f.must(f.Workstreams.Terminate(f.ctx, "w1"))
	same(f, "the replies of one that was terminated", len(f.dueWorkstream().Replies), 0)
}

func workstreamSteps(f *fixture) {
	_, err := f.launch(f.parent(), "w1", fewWorkstreams)
	f.must(err)
	d, next := f.dueWorkstream(), workstreams.Step{State: workstreams.Running, Said: 1, DueAt: f.clock.Now()}
	f.clock.advance(time.Second)
	f.must(f.Workstreams.Terminate(f.ctx, "w1"))
	same(f, "after something has happened", f.settle(d, next), false)
	d = f.dueWorkstream()
	next.State = workstreams.Canceling
	same(f, "taken", f.settle(d, next), true)
	same(f, "taken again", f.settle(d, next), false)
}

func workstreamEndsIdle(f *fixture) {
	run := f.launched(f.parent(), "w1")
	f.commit(run, answer("42"))
	d, end := f.dueWorkstream(), workstreams.Step{State: workstreams.Completed, Said: 1, DueAt: f.clock.Now()}
	accepted := f.accept(f.envelope(event.KindMessage, event.WorkstreamThread("w1"), "C1/more"))
	same(f, "an end before a message is recorded", f.settle(d, end), false)
	f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/more", "and more")}, triggers)
	same(f, "an end before the turn", f.settle(d, end), false)
	f.commit(f.begin(event.WorkstreamThread("w1")), answer("43"))
	d = f.dueWorkstream()
	same(f, "replies", len(d.Replies), 2)
	same(f, "an end behind the turn", f.settle(d, end), true)
}

// launched begins a run of a new workstream of a run.
func (f *fixture) launched(run, id string) *runs.Run {
	f.Helper()
	_, err := f.launch(run, id, workstreams.Bounds{Max: 2, Depth: 2})
	f.must(err)
	f.message(event.WorkstreamThread(id), said("C1/"+id, "do it"), triggers)
	return f.begin(event.WorkstreamThread(id))
}

func workstreamMessages(f *fixture) {
	lead := f.asked()
	child := f.launched(lead.ID, "w1")
	below := f.launched(child.ID, "w2")
	changed, stop := f.Runs.FollowRun(lead.ID)
	defer stop()
	f.append(lead, chunk("a", "I "))
	<-changed
	f.append(child, chunk("a", "He"), thought("hm"), stream.Message{Type: stream.Complete, Text: "left out"})
	<-changed
	f.append(below, thought("deep"))
	<-changed
	list := func() []string {
		page, err := f.Runs.RunEvents(f.ctx, lead.ID, 0, 100)
		f.must(err)
		return each(page.Events, func(e runs.Event) string {
			return strings.Join([]string{e.Type.String(), e.Text, e.Workstream, strings.NewReplacer(child.ID, "child", lead.ID, "lead").Replace(e.ActivityID)}, " ")
		})
	}
	same(f, "while all work", list(), []string{"STREAMING_CHUNK I   a", "STREAMING_CHUNK He w1 child/a", "THOUGHT hm w1 ", "THOUGHT deep w2 "})
	f.leaves(lead, runs.Unanswered{At: f.clock.Now(), Failed: true})
	lead = f.begin(threadKey(1))
	again := []string{"STREAMING_CHUNK He w1 child/a", "THOUGHT hm w1 ", "THOUGHT deep w2 ", "THOUGHT The answer begins again.  a"}
	same(f, "in another attempt of the parent", list(), again)
	reply := answer("Hello.")
	reply.Events = []stream.Message{{Type: stream.Answer, Text: "Hello.", ActivityID: "a"}, {Type: stream.Complete}}
	f.commit(child, reply)
	<-changed
	same(f, "after the child's run", list(), append(again[1:], "ANSWER Hello. w1 child/a"))
	f.commit(lead, answer("Done."))
	f.append(below, thought("late"))
	same(f, "after the parent's run", len(list()), 4)
}

func workstreamProgress(f *fixture) {
	lead := f.parent()
	run := f.launched(lead, "w1")
	for _, c := range []struct {
		said stream.Message
		want workstreams.Progress
	}{
		{stream.Message{Type: stream.Update, Details: []byte(`{"tool":"search","tool_event":"started"}`)}, workstreams.Progress{Phase: workstreams.ExecutingTool, Tool: "search"}},
		{stream.Message{Type: stream.Update, Text: "halfway"}, workstreams.Progress{Phase: workstreams.ExecutingTool, Tool: "search"}},
		{stream.Message{Type: stream.Thought, Text: "of another", Workstream: "w2"}, workstreams.Progress{Phase: workstreams.ExecutingTool, Tool: "search"}},
		{stream.Message{Type: stream.Update, Details: []byte(`{"tool":"search","tool_event":"completed"}`)}, workstreams.Progress{Phase: workstreams.Synthesizing}},
		{thought("hm"), workstreams.Progress{Phase: workstreams.Planning}},
		{chunk("a", "He"), workstreams.Progress{Phase: workstreams.Synthesizing}},
	} {
		f.append(run, c.said)
		w, err := f.Workstreams.Workstream(f.ctx, "w1")
		f.must(err)
		same(f, c.said.Type.String()+string(c.said.Details), w.Progress, c.want)
	}
	page, err := f.Runs.RunEvents(f.ctx, lead, 0, 100)
	f.must(err)
	same(f, "the readers above", string(page.Events[1].Details), `{"deadline_elapsed":0,"iteration":0,"message":"","phase":"executing_tool","state":"running","tool_name":"search","workstream_name":"helper"}`)
	same(f, "their last message", string(page.Events[len(page.Events)-1].Details), `{"deadline_elapsed":0,"iteration":0,"message":"","phase":"synthesizing","state":"running","tool_name":"","workstream_name":"helper"}`)
	f.must(f.Runs.PutStep(f.ctx, f.claim(run.Thread), run, 2, "{}"))
	w, err := f.Workstreams.Workstream(f.ctx, "w1")
	f.must(err)
	same(f, "the third request", w.Iteration, int64(3))
	f.must(f.Workstreams.Report(f.ctx, "w1", workstreams.Progress{Phase: workstreams.Blocked}))
	w, err = f.Workstreams.Workstream(f.ctx, "w1")
	f.must(err)
	same(f, "a report of the phase alone", w.Progress, workstreams.Progress{Phase: workstreams.Blocked, Iteration: 3})
}

func workstreamLocks(f *fixture) {
	lead := f.asked()
	child := f.launched(lead.ID, "w1")
	if !f.onShared() {
		return
	}
	f.beside(func(tx storage.Tx) error {
		_, err := tx.Row(nil, `SELECT 1 FROM threads WHERE run_id = $1 FOR UPDATE`, lead.ID)
		return err
	}, func(tx storage.Tx) error { // as a stop of the parent, which would be in a deadlock
		free, err := tx.Row(nil, `SELECT 1 FROM workstreams WHERE id = 'w1' FOR UPDATE SKIP LOCKED`)
		if err == nil && !free {
			err = errors.New("the workstream is locked")
		}
		return err
	}, func() error {
		return f.Runs.AppendEvents(f.ctx, f.claim(child.Thread), child, []stream.Message{chunk("a", "He")})
	})
}

func workstreamStops(f *fixture) {
	thread := event.WorkstreamThread("w1")
	f.launched(f.parent(), "w1")
	f.message(thread, said("C1/more", "and more"), triggers)
	f.message(thread, said("C1/stop", "/stop"), commands)
	same(f, "messages that wait", f.count("messages WHERE trigger = 'run' AND run IS NULL"), 0)
	same(f, "its thread with work", f.count("threads WHERE key = '"+string(thread)+"' AND (run_id IS NOT NULL OR turn_since IS NOT NULL)"), 0)
}

// endsWithChildren lets runs end in each way while one workstream works and the report of another one waits. The thread keeps
// the report in each case.
func endsWithChildren(f *fixture) {
	asked := func(thread event.ThreadKey) event.Event { return deleted("C1/" + string(thread)) }
	reply := func(stale string) runs.Reply {
		r := answer("Hello.")
		r.Stale = stale
		return r
	}
	for i, c := range []struct {
		name string
		end  func(run *runs.Run)
		goOn bool
	}{
		{"an answer", func(run *runs.Run) { f.commit(run, answer("Hello.")) }, true},
		{"a quiet end", func(run *runs.Run) { f.leaves(run, runs.Unanswered{State: runs.Quiet}) }, true},
		{"a failure", func(run *runs.Run) { f.fail(run, "Sorry.") }, false},
		{"a stop by an operator or a client", f.stop, false},
		{"a stop by a person", func(run *runs.Run) { f.message(run.ThreadKey, said("stop "+run.ID, "/stop"), commands) }, false},
		{"an interruption", func(run *runs.Run) { f.leaves(run, runs.Unanswered{State: runs.Interrupted}) }, false},
		{"a stale answer that is dropped", func(run *runs.Run) {
			f.message(run.ThreadKey, said("more "+run.ID, "and more"), passive)
			f.commit(run, reply("drop"))
		}, false},
		{"a delete before the answer", func(run *runs.Run) {
			f.change(run.ThreadKey, asked(run.ThreadKey), nil)
			f.commit(run, answer("Hello."))
		}, false},
		{"a delete while the agent answers later", func(run *runs.Run) {
			f.leaves(run, runs.Unanswered{At: f.clock.Now().Add(day), Taken: true})
			same(f, "nothing is due", f.mayBegin(run.ThreadKey, false) == nil, true)
			f.change(run.ThreadKey, asked(run.ThreadKey), nil)
			again := f.begin(run.ThreadKey)
			same(f, "its messages", len(again.Messages), 0)
			f.leaves(again, runs.Unanswered{State: runs.Canceled})
		}, false},
	} {
		thread := threadKey(10 + i)
		f.message(thread, said("C1/"+string(thread), "hi"), triggers)
		run := f.begin(thread)
		works, ended := fmt.Sprint("works", i), fmt.Sprint("ended", i)
		for _, id := range []string{works, ended} {
			_, err := f.launch(run.ID, id, fewWorkstreams)
			f.must(err)
		}
		f.exec(`UPDATE workstreams SET state = 'completed' WHERE id = $1`, ended)
		report := string(event.WorkstreamThread(ended)) + "/parent/end"
		f.message(thread, said(report, "42"), func(m *event.Message, _ record.Look) record.Decision {
			return record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonWorkstream, Metadata: m.Metadata.Bytes()}
		})
		c.end(run)
		w, err := f.Workstreams.Workstream(f.ctx, works)
		f.must(err)
		want, waits := workstreams.Canceling, int64(0)
		if c.goOn {
			want, waits = workstreams.Running, 1
		}
		same(f, "the workstream after "+c.name, w.State, want)
		same(f, "the report after "+c.name, f.count("messages WHERE content = '42' AND trigger = 'run' AND run IS NULL AND external_id = '"+report+"'"), waits)
		same(f, "the line of the report after "+c.name, f.count("messages WHERE content = '42' AND seq IS NOT NULL AND external_id = '"+report+"'"), 1)
	}
}

func reportsStay(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "hi", "Wait.")
	report := said("workstream:w1/parent/end", "It is done.")
	report.Internal = &event.Internal{ID: report.ExternalID, Runs: true}
	f.message(threadKey(1), report, func(m *event.Message, _ record.Look) record.Decision {
		return record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonWorkstream, Metadata: m.Metadata.Bytes()}
	})
	f.commit(f.begin(threadKey(1)), answer("Thanks."))
	f.message(threadKey(1), said("C1/2", "and now?"), triggers)
	same(f, "transcript", f.transcript(f.begin(threadKey(1)), wide), []string{">hi", "<Wait.", ">It is done.", "<Thanks.", ">and now?"})
	for _, m := range f.list(threadKey(1)) {
		if m.Asked != nil && m.Asked.Error != "" {
			f.Fatalf("the report is the error of %+v", m)
		}
	}
}

func workstreamEndStands(f *fixture) {
	_, err := f.launch(f.parent(), "w1", fewWorkstreams)
	f.must(err)
	f.settle(f.dueWorkstream(), workstreams.Step{State: workstreams.Canceled, Phase: workstreams.Done, Said: 1})
	thread := event.WorkstreamThread("w1")
	f.message(thread, said("C1/late", "and more"), triggers)
	run, err := f.Runs.BeginRun(f.ctx, f.claim(f.thread(thread)), agent, false, func(*runs.Run) bool { return false }, math.MaxInt64)
	f.must(err)
	same(f, "no run", run == nil, true)
	same(f, "its thread with work", f.count("threads WHERE key = '"+string(thread)+"' AND (run_id IS NOT NULL OR turn_since IS NOT NULL)"), 0)
	same(f, "the stopped run", f.count("runs WHERE state = 'canceled'"), 1)
}

func workstreamsMakeNothingStale(f *fixture) {
	run := f.asked()
	for id, trigger := range map[string]messages.Trigger{"C1/warning": messages.TriggerPassive, "C1/report": messages.TriggerRun} {
		f.message(threadKey(1), said(id, id), func(m *event.Message, _ record.Look) record.Decision {
			return record.Decision{Trigger: trigger, Reason: event.ReasonWorkstream, Metadata: m.Metadata.Bytes()}
		})
	}
	reply := answer("hello")
	reply.Stale = "drop"
	same(f, "the reply", f.commit(run, reply).State, runs.Done)
}

func artifacts(f *fixture) {
	copied := func(path string) event.Attachment {
		f.must(f.Files.HoldCopy(f.ctx, "attachments", path, day))
		return event.Attachment{ID: path, Name: path + ".txt", MimeType: "text/plain", Size: 3, Copy: &event.Copy{Bucket: "attachments", Path: path}}
	}
	asked := said("C1/1", "hi")
	asked.Attachments = []event.Attachment{copied("given")}
	f.message(threadKey(1), asked, triggers)
	lead := f.begin(threadKey(1))
	_, err := f.Workstreams.Launch(f.ctx, workstreams.Workstream{ID: "apart", Run: lead.ID, Agent: agent, Task: "do it", Apart: true, DeadlineAt: f.clock.Now().Add(time.Minute)}, fewWorkstreams)
	f.must(err)
	f.message(event.WorkstreamThread("apart"), said("C1/apart", "do it"), triggers)
	made := func(run *runs.Run, path string) {
		reply := answer("Here.")
		reply.Files = []event.Attachment{copied(path)}
		f.commit(run, reply)
	}
	made(f.begin(event.WorkstreamThread("apart")), "hidden")
	child := f.launched(lead.ID, "w1")
	below := f.launched(child.ID, "w2")
	made(below, "deep")
	made(child, "child")
	reply := answer("Here.", "Here.")
	own := copied("own")
	reply.Posts[0].File = &outbox.File{Name: own.Name, MimeType: own.MimeType, Size: own.Size, Bucket: "attachments", Path: "own"}
	f.commit(lead, reply)
	list, err := f.Runs.Artifacts(f.ctx, lead.ID)
	f.must(err)
	got := each(list, func(a runs.Artifact) string {
		return fmt.Sprint(a.Child, " ", a.Made, " ", a.File.Name, " ", a.File.Size, " ", *a.File.Copy)
	})
	same(f, "files", got, []string{
		" true own.txt 3 {attachments own}", " false given.txt 3 {attachments given}",
		"w1 true child.txt 3 {attachments child}", "w1/w2 true deep.txt 3 {attachments deep}",
	})
}

func workstreamEnds(f *fixture) {
	_, err := f.launch(f.parent(), "w1", fewWorkstreams)
	f.must(err)
	f.must(f.Workstreams.Report(f.ctx, "w1", workstreams.Progress{Phase: workstreams.ExecutingTool, Tool: "search", Iteration: 2, Message: "page 2"}))
	f.settle(f.dueWorkstream(), workstreams.Step{State: workstreams.Completed, Phase: workstreams.Done, Said: 1, Summary: "42"})
	same(f, "a report", errors.Is(f.Workstreams.Report(f.ctx, "w1", workstreams.Progress{}), workstreams.ErrEnded), true)
	same(f, "a termination", errors.Is(f.Workstreams.Terminate(f.ctx, "w1"), workstreams.ErrEnded), true)
	same(f, "a termination of none", errors.Is(f.Workstreams.Terminate(f.ctx, "w2"), storage.ErrNotFound), true)
	w, err := f.Workstreams.Workstream(f.ctx, "w1")
	f.must(err)
	same(f, "workstream", []any{w.State, w.Tool, w.Iteration, w.Summary, w.EndedAt}, []any{workstreams.Completed, "search", int64(2), "42", f.clock.Now()})
	f.clock.advance(90 * day)
	f.prune()
	same(f, "after 90 days", f.count("workstreams"), 0)
}
