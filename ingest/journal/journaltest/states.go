package journaltest

import (
	"time"

	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

func statePromises() []promise {
	return []promise{
		{"a run has one state post, which begins with its plan or its first workstream", stateBegins},
		{"a change during a call makes the state post due again", stateChanges},
		{"a state post that was posted is changed, not before its time, and delays no answer", stateWaits},
		{"a state post is due again at the end of its run, and with each change of its workstreams", stateEnds},
		{"a text that may be on the platform stays until the call is clear", stateFrozen},
		{"a state post that was given up stays", stateGivenUp},
		{"people who see no plan have no state post", stateUnseen},
		{"the run of a schedule has no state post", stateScheduled},
	}
}

// showsStates lets the people of every workspace see the state posts of all runs.
func (f *fixture) showsStates() {
	f.Journal = journal.New(f.engine, journal.Options{Node: "first", Now: f.clock.Now, Shows: func(_, _, _ string) bool { return true }})
}

var planned = stream.Message{Type: stream.Plan, Text: "plan", Details: []byte(`["a"]`)}

// plans begins a run with a plan.
func (f *fixture) plans() *runs.Run {
	f.Helper()
	f.showsStates()
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{planned}))
	return run
}

// stating begins the call of a state post.
func (f *fixture) stating(d *outbox.Delivery, text string) {
	f.Helper()
	d.Post = outbox.Post{Channel: channel, Place: sign.Place, Text: text}
	f.sending(d)
}

// states returns the kind and the state of the run's state post.
func (f *fixture) states(run *runs.Run) (post string) {
	f.Helper()
	f.must(f.engine.ReadOne(f.ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&post}, `SELECT kind || ' ' || state FROM deliveries WHERE run = $1 AND kind IN ('state', 'restate')`, run.ID)
		return err
	}))
	return post
}

func stateBegins(f *fixture) {
	run := f.plans()
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{planned, {Type: stream.Warning, Text: "careful"}}))
	_, err := f.Workstreams.Launch(f.ctx, workstreams.Workstream{ID: "w1", Run: run.ID, Agent: agent, DeadlineAt: f.clock.Now().Add(time.Minute)}, fewWorkstreams)
	f.must(err)
	same(f, "deliveries", f.count("deliveries"), 1)
	d := f.delivery(threadKey(1))
	same(f, "the post", [3]any{d.Kind, d.State, d.Run}, [3]any{outbox.KindState, outbox.Pending, run.ID})
	stated, err := f.Runs.StateOf(f.ctx, run.ID)
	f.must(err)
	same(f, "what it shows", []any{stated.Agent, stated.State, stated.Plan.Text, len(stated.Notes), len(stated.Children), stated.Answers},
		[]any{agent, runs.State(""), "plan", 1, 1, "C1/2"})

	f.message(threadKey(2), said("C1/3", "a"), triggers)
	second := f.begin(threadKey(2))
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(second.Thread), second, []stream.Message{{Type: stream.Warning, Text: "careful"}}))
	same(f, "after a warning", f.states(second), "")
	_, err = f.Workstreams.Launch(f.ctx, workstreams.Workstream{ID: "w2", Run: second.ID, Agent: agent, DeadlineAt: f.clock.Now().Add(time.Minute)}, fewWorkstreams)
	f.must(err)
	same(f, "after a launch", f.states(second), "state pending")
	_, err = f.Runs.StateOf(f.ctx, "another")
	f.fails("an unknown run", err, storage.ErrNotFound)
}

func stateChanges(f *fixture) {
	run := f.plans()
	d := f.delivery(threadKey(1))
	f.stating(d, "one")
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{planned}))
	next := f.clock.Now().Add(time.Second)
	f.must(f.Outbox.SentState(f.ctx, d, "C1/9", next))
	d = f.delivery(threadKey(1))
	same(f, "due again", [4]any{d.Kind, d.State, d.PlatformID, d.DueAt}, [4]any{outbox.KindRestate, outbox.Pending, "C1/9", next})
	f.clock.advance(time.Second)
	read := f.delivery(threadKey(1))
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{planned})) // since the text was made
	f.stating(read, "two")
	f.must(f.Outbox.SentState(f.ctx, read, "C1/9", f.clock.Now()))
	same(f, "after a change before the call", f.states(run), "restate pending")
	read = f.delivery(threadKey(1))
	f.stating(read, "three")
	f.must(f.Outbox.SentState(f.ctx, read, "C1/9", f.clock.Now()))
	same(f, "without a change", f.states(run), "restate sent")
	id, err := f.Outbox.FirstUnknown(f.ctx, workspace, []string{"C1/9"})
	f.must(err)
	same(f, "it is ours", id, "")
}

func stateWaits(f *fixture) {
	run := f.plans()
	d := f.delivery(threadKey(1))
	f.stating(d, "one")
	next := f.clock.Now().Add(time.Minute)
	f.must(f.Outbox.SentState(f.ctx, d, "C1/9", next))
	same(f, "due", f.due(deliveries), nil)
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{planned}))
	same(f, "when", f.delivery(threadKey(1)).DueAt, next)
	same(f, "due with a change", f.due(deliveries), nil)
	f.shows(run, "grow", "C1/8")
	reply := answer("A", "A1")
	reply.Send = &sending
	same(f, "the answer begins", f.commit(run, reply).Begun != nil, true)
	same(f, "the first one", f.delivery(threadKey(1)).Kind, outbox.KindPost)
	f.deliver(threadKey(1), "C1/10")
	same(f, "the next one", f.delivery(threadKey(1)).Kind, outbox.KindRestate)
	f.clock.advance(time.Minute)
	same(f, "due then", f.due(deliveries), []int64{run.Thread})
}

func stateEnds(f *fixture) {
	run := f.plans()
	_, err := f.Workstreams.Launch(f.ctx, workstreams.Workstream{ID: "w1", Run: run.ID, Agent: agent, DeadlineAt: f.clock.Now().Add(time.Minute)}, fewWorkstreams)
	f.must(err)
	sent := func(what string) {
		f.Helper()
		d := f.delivery(threadKey(1))
		if d == nil {
			f.Fatalf("after %s, nothing is due", what)
			return
		}
		f.stating(d, what)
		f.must(f.Outbox.SentState(f.ctx, d, "C1/9", f.clock.Now()))
		same(f, "after "+what, f.states(run), "restate sent")
	}
	sent("the plan")
	child := f.message(event.WorkstreamThread("w1"), said("C1/3", "task"), triggers)
	same(f, "the child's thread", child.Message != nil, true)
	of := f.begin(event.WorkstreamThread("w1"))
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(of.Thread), of, []stream.Message{{Type: stream.Update, Text: "search", Details: []byte(`{"tool":"search","tool_event":"started"}`)}}))
	sent("the tool of a child")
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(of.Thread), of, []stream.Message{planned}))
	sent("the child's own plan")
	f.commit(of, answer("Found."))
	f.leaves(run, runs.Unanswered{State: runs.Failed, Cause: "broken"})
	sent("the end")
	stated, err := f.Runs.StateOf(f.ctx, run.ID)
	f.must(err)
	same(f, "the run", [2]any{stated.State, stated.Error}, [2]any{runs.Failed, "broken"})
	f.must(f.Workstreams.Report(f.ctx, "w1", workstreams.Progress{Phase: workstreams.Synthesizing}))
	sent("a report")
	due := f.dueWorkstream()
	same(f, "settled", f.settle(due, workstreams.Step{State: workstreams.Completed, Phase: workstreams.Done}), true)
	sent("the child's end")
	same(f, "state posts", f.count("deliveries WHERE kind IN ('state', 'restate')"), 1)
}

func stateFrozen(f *fixture) {
	run := f.plans()
	d := f.delivery(threadKey(1))
	d.Post = outbox.Post{Channel: channel, Place: sign.Place, Text: "one", Card: &card.View{Parts: []card.Part{{Kind: card.KindTitle, Text: "one"}}}}
	f.sending(d)
	f.must(f.Outbox.Resend(f.ctx, d, f.clock.Now(), "unclear"))
	again := f.delivery(threadKey(1))
	same(f, "frozen", [3]any{again.Frozen(), again.Post.Text, again.Post.Card}, [3]any{true, "one", d.Post.Card})
	f.sending(again)
	f.must(f.Outbox.SentState(f.ctx, again, "C1/9", f.clock.Now()))
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{planned}))
	change := f.delivery(threadKey(1))
	f.stating(change, "two")
	f.must(f.Outbox.Resend(f.ctx, change, f.clock.Now(), "unclear"))
	change = f.delivery(threadKey(1))
	same(f, "a change that is unclear", [2]any{change.Frozen(), change.Post.Text}, [2]any{false, ""})
	f.must(f.Outbox.KeepState(f.ctx, change))
	same(f, "kept", f.states(run), "restate sent")
}

func stateGivenUp(f *fixture) {
	run := f.plans()
	d := f.delivery(threadKey(1))
	f.must(f.Outbox.KeepState(f.ctx, d))
	same(f, "nothing to post yet", f.states(run), "state held")
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{planned}))
	d = f.delivery(threadKey(1))
	f.stating(d, "one")
	f.must(f.Outbox.GiveUp(f.ctx, d, outbox.Failed, "refused"))
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{planned}))
	same(f, "given up", f.states(run), "state failed")
	f.commit(run, answer("A", "A1"))
	same(f, "deliveries", f.outbox(run), []string{"post A1"})
}

func stateUnseen(f *fixture) {
	f.message(threadKey(1), said("C1/2", "a"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{planned}))
	same(f, "state posts", f.states(run), "")
}

func stateScheduled(f *fixture) {
	f.showsStates()
	f.message(threadKey(1), said("C1/2", "a"), decided(record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonSchedule}))
	run := f.begin(threadKey(1))
	f.must(f.Runs.AppendEvents(f.ctx, f.claim(run.Thread), run, []stream.Message{planned}))
	same(f, "after a plan", f.states(run), "")
}
