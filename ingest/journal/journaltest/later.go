package journaltest

import (
	"time"

	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

func laterPromises() []promise {
	return []promise{
		{"a run that was taken waits for its answer, also over a restart", takenRunWaits},
		{"a run without its answer is due after the wait, and was taken", takenRunEnds},
		{"an answer may come before the wait for it", answerBeforeWait},
		{"a run that is put off has its answer already", answerDuringPutOff},
		{"a run has one later answer", oneLaterAnswer},
		{"an acknowledged answer counts, not the one of the open request", answerDuringRequest},
		{"an answer after another end of its run is refused", answerAfterEnd},
		{"a run whose later answer is stale is asked anew", staleLaterAnswer},
		{"a report of the agent makes a run due that was taken and waits, and no other", nudgedRun},
	}
}

// late returns a later answer.
func late(text string) stream.Message {
	return stream.Message{Type: stream.Answer, Text: text, Details: []byte(`{"mood":"good"}`)}
}

func takenRunWaits(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	same(f, "taken at first", run.Taken, false)
	until := f.clock.Now().Add(time.Hour)
	due, err := f.Runs.EndAttempt(f.ctx, f.claim(run.Thread), run, runs.Unanswered{At: until, Taken: true})
	f.must(err)
	same(f, "due", due.Equal(until), true)

	after := f.node("after")
	f.must(after.Runs.AnswerRun(f.ctx, run.ID, late("Hello.")))
	again := after.begin(threadKey(1))
	same(f, "run", again.ID, run.ID)
	same(f, "taken", again.Taken, true)
	same(f, "answer", *again.Answer, late("Hello."))
	later, err := f.Runs.LaterRun(f.ctx, run.ID)
	f.must(err)
	same(f, "later run", later, runs.Later{ID: run.ID, Thread: run.Thread, Agent: agent})
}

func takenRunEnds(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.leaves(run, runs.Unanswered{At: f.clock.Now().Add(time.Hour), Taken: true})
	f.clock.advance(time.Hour)
	again := f.node("after").begin(threadKey(1))
	same(f, "run", again.ID, run.ID)
	same(f, "taken, without an answer", again.Taken && again.Answer == nil, true)
	same(f, "deaths", again.Claims, 0)
}

func nudgedRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	pause := f.clock.Now().Add(time.Hour)
	f.must(f.Runs.NudgeRun(f.ctx, run.ID))
	f.leaves(run, runs.Unanswered{At: pause, Failed: true})
	f.must(f.Runs.NudgeRun(f.ctx, run.ID))
	f.clock.advance(time.Hour)
	run = f.begin(threadKey(1))
	same(f, "the pause after a failed attempt", run.NotBefore.Equal(pause), true)
	f.leaves(run, runs.Unanswered{At: pause.Add(time.Hour), Taken: true})
	f.must(f.Runs.NudgeRun(f.ctx, run.ID))
	again := f.begin(threadKey(1))
	same(f, "a taken run's", again.Taken && !again.NotBefore.After(f.clock.Now()), true)
	f.commit(again, answer("Hello."))
	f.must(f.Runs.NudgeRun(f.ctx, run.ID))
}

func answerBeforeWait(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.AnswerRun(f.ctx, run.ID, late("")))
	due, err := f.Runs.EndAttempt(f.ctx, f.claim(run.Thread), run, runs.Unanswered{At: f.clock.Now().Add(time.Hour), Taken: true})
	f.must(err)
	same(f, "due now", due.After(f.clock.Now()), false)
	same(f, "answer", *f.begin(threadKey(1)).Answer, late(""))
}

// answerDuringPutOff: a message woke the thread, and the answer came before the run was put off.
func answerDuringPutOff(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.leaves(run, runs.Unanswered{At: f.clock.Now().Add(time.Hour), Taken: true})
	f.message(threadKey(1), said("C1/2", "still there?"), triggers)
	run = f.begin(threadKey(1))
	f.must(f.Runs.AnswerRun(f.ctx, run.ID, late("")))
	f.leaves(run, runs.Unanswered{})
	same(f, "answer", *f.begin(threadKey(1)).Answer, late(""))
}

func oneLaterAnswer(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.TakeRun(f.ctx, f.claim(run.Thread), run, true))
	f.must(f.Runs.TakeRun(f.ctx, f.claim(run.Thread), run, true))
	same(f, "taken", f.begin(threadKey(1)).Taken, true)
	f.must(f.Runs.TakeRun(f.ctx, f.claim(run.Thread), run, false))
	same(f, "not taken after all", f.begin(threadKey(1)).Taken, false)
	f.must(f.Runs.AnswerRun(f.ctx, run.ID, late("one"), "k1", "k2"))
	f.fails("the second answer", f.Runs.AnswerRun(f.ctx, run.ID, late("two")), runs.ErrAnswered)
	f.fails("the second answer with a key", f.Runs.AnswerRun(f.ctx, run.ID, late("two"), "k3"), runs.ErrAnswered)
	f.must(f.Runs.AnswerRun(f.ctx, run.ID, late("two"), "k3", "k2"))
	second := late("two")
	f.fails("the second answer with words", f.Runs.AddEvents(f.ctx, run.ID, runs.Added{Messages: []stream.Message{thought("hm")}, Own: true, Answer: &second}), runs.ErrAnswered)
	f.must(f.Runs.AddEvents(f.ctx, run.ID, runs.Added{Messages: []stream.Message{thought("hm")}, Own: true, Answer: &second, AnswerKeys: []string{"k1"}}))
	page, err := f.Runs.RunEvents(f.ctx, run.ID, 0, 10)
	f.must(err)
	same(f, "the words", len(page.Events), 0)
	f.commit(f.begin(threadKey(1)), answer("one"))
	f.fails("an answer after the end", f.Runs.AnswerRun(f.ctx, run.ID, late("two")), runs.ErrAnswered)
	f.must(f.Runs.AnswerRun(f.ctx, run.ID, late("one"), "k1"))
}

func answerDuringRequest(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.AnswerRun(f.ctx, run.ID, late("one")))
	same(f, "the other answer", f.commit(run, answer("two")).State, runs.Unfinished)
	again := f.begin(threadKey(1))
	same(f, "answer", *again.Answer, late("one"))
	same(f, "result", f.commit(again, answer("one")).State, runs.Done)
}

func answerAfterEnd(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.TakeRun(f.ctx, f.claim(run.Thread), run, true))
	f.fail(run, "Sorry.")
	f.fails("an answer", f.Runs.AnswerRun(f.ctx, run.ID, late("late")), runs.ErrEnded)
	_, err := f.Runs.LaterRun(f.ctx, "no such run")
	f.fails("an unknown run", err, storage.ErrNotFound)
}

func staleLaterAnswer(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.TakeRun(f.ctx, f.claim(run.Thread), run, true))
	f.message(threadKey(1), said("C1/2", "and this?"), triggers)
	f.must(f.Runs.AnswerRun(f.ctx, run.ID, late("one")))
	reply := answer("one")
	reply.Stale = "rerun"
	same(f, "result", f.commit(run, reply).State, runs.Unfinished)
	again := f.begin(threadKey(1))
	same(f, "run", again.ID, run.ID)
	same(f, "taken or answered", again.Taken || again.Answer != nil, false)
	f.must(f.Runs.AnswerRun(f.ctx, run.ID, late("two")))
}
