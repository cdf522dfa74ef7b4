package journaltest

import (
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

func retryPromises() []promise {
	return []promise{
		{"a failed run is asked again once, with the same messages and their block", retriedRun},
		{"a failed run is asked again after a later one", retriedLater},
		{"only a failed run with messages is asked again", notRetried},
	}
}

func retriedRun(f *fixture) {
	f.message(threadKey(1), said("C1/0", "by the way"), passive)
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.message(threadKey(1), said("C1/2", "there"), triggers)
	first := f.begin(threadKey(1))
	f.fail(first, "Sorry.")
	again, err := f.Runs.RetryRun(f.ctx, first.ID)
	f.must(err)
	same(f, "again", again, runs.Again{Thread: first.Thread, Agent: agent, Owner: again.Owner, Messages: 2})
	same(f, "due", f.due(turns), []int64{first.Thread})
	_, err = f.Runs.RetryRun(f.ctx, first.ID)
	f.fails("twice", err, runs.ErrAskedAgain)
	second := f.begin(threadKey(1))
	same(f, "asked", contents(second.Messages), contents(first.Messages))
	same(f, "another run", second.ID != first.ID, true)
	same(f, "block", second.ContextAfter, first.ContextAfter)
	f.commit(second, answer("Hello."))
	same(f, "thread", f.lines(threadKey(1)), []string{"1 by the way", "2 hi", "3 there", "4 Sorry.", "5 Hello."})
	same(f, "states", []string{f.run(first.ID).State, f.run(second.ID).State}, []string{"failed", "done"})
	same(f, "both are in one trace", []string{f.firstOf(first.ID), f.firstOf(second.ID)}, []string{"hi", "hi"})
	_, err = f.Runs.RetryRun(f.ctx, second.ID)
	f.fails("an answered one", err, runs.ErrNotFailed)
}

func retriedLater(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	first := f.begin(threadKey(1))
	f.fail(first, "Sorry.")
	f.exchange(threadKey(1), "C1/2", "and now?", "Yes.")
	_, err := f.Runs.RetryRun(f.ctx, first.ID)
	f.must(err)
	second := f.begin(threadKey(1))
	same(f, "asked", contents(second.Messages), []string{"hi"})
	f.commit(second, answer("Hello."))
	same(f, "nothing is left", len(f.due(turns)), 0)
}

func notRetried(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	_, err := f.Runs.RetryRun(f.ctx, run.ID)
	f.fails("an unfinished one", err, runs.ErrNotFailed)
	_, err = f.Runs.RetryRun(f.ctx, "no such run")
	f.fails("an unknown one", err, storage.ErrNotFound)
	f.fail(run, "Sorry.")
	f.change(threadKey(1), deleted("C1/1"), triggers)
	_, err = f.Runs.RetryRun(f.ctx, run.ID)
	f.fails("one whose messages were deleted", err, runs.ErrAskedAgain)
}
