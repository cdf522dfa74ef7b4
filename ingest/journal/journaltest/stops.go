package journaltest

import (
	"time"

	"parley/ingest/journal"
)

func stopPromises() []promise {
	return []promise{
		{"a stopped run ends without an answer, with a notice", stoppedRun},
		{"a worker writes nothing about a stopped run", stoppedRunIsFenced},
		{"messages that wait are due after a stop", stopLeavesTheNext},
		{"only an unfinished run can be stopped", stopAfterEnd},
	}
}

// stopNotice is the notice of a stop.
var stopNotice = journal.Notice{Text: "Stopped.", Metadata: []byte(`{"k":1}`), Posts: []journal.Post{{Channel: channel, Place: "1", Text: "Stopped."}}}

func (f *fixture) stop(run *journal.Run) {
	f.Helper()
	stopped, err := f.StopRun(f.ctx, run.ID, stopNotice)
	f.must(err)
	same(f, "stopped", stopped, journal.Stopped{Thread: run.Thread, Agent: agent, Owner: "test"})
}

func stoppedRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), runs)
	run := f.begin(threadKey(1))
	f.stop(run)
	unfinished, err := f.UnfinishedRun(f.ctx, run.Thread)
	f.must(err)
	same(f, "unfinished run", unfinished, "")
	same(f, "turns", f.due(turns), nil)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Stopped."})
	same(f, "asked", f.list(threadKey(1))[0].Asked, &journal.Asked{ID: run.ID, State: "cancelled", Error: "Stopped."})
	same(f, "post", f.delivery(threadKey(1)).Post.Text, "Stopped.")
	f.message(threadKey(1), said("C1/2", "and now?"), runs)
	same(f, "asked next", contents(f.begin(threadKey(1)).Messages), []string{"and now?"})
}

func stoppedRunIsFenced(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), runs)
	run, post := f.begin(threadKey(1)), journal.Post{Channel: channel, Place: "1", Text: "He"}
	preview, _, err := f.BeginPreview(f.ctx, f.claim(run.Thread), run, post, false, journal.Send{Timeout: time.Second})
	f.must(err)
	_, err = f.Sent(f.ctx, preview, "C1/9")
	f.must(err)
	f.must(f.MarkSigned(f.ctx, f.claim(run.Thread), run, journal.Post{Channel: channel, Text: "C1/1"}, time.Second))
	f.stop(run)
	_, err = f.CommitReply(f.ctx, f.claim(run.Thread), run, answer("Hello.", "Hello."))
	f.fails("the reply", err, journal.ErrFenced)
	_, err = f.ChangePreview(f.ctx, f.claim(run.Thread), run, preview, journal.Send{})
	f.fails("a change of the preview", err, journal.ErrFenced)
	f.fails("a retry", f.RetryRun(f.ctx, f.claim(run.Thread), run, f.clock.Now()), journal.ErrFenced)
	same(f, "the notice", f.deliver(threadKey(1), "C1/10").Kind, journal.DeliveryPost)
	same(f, "the preview", f.deliver(threadKey(1), "").Kind, journal.DeliveryRemove)
	same(f, "the sign", f.deliver(threadKey(1), "").Kind, journal.DeliveryUnsign)
}

func stopLeavesTheNext(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), runs)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "and?"), runs)
	_, err := f.AwaitAnswer(f.ctx, f.claim(run.Thread), run, f.clock.Now().Add(time.Hour))
	f.must(err)
	f.stop(run)
	same(f, "turns", f.due(turns), []int64{run.Thread})
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"and?"})
	f.fails("the later answer", f.AnswerRun(f.ctx, run.ID, "late"), journal.ErrEnded)
}

func stopAfterEnd(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), runs)
	run := f.begin(threadKey(1))
	f.commit(run, answer("Hello."))
	_, err := f.StopRun(f.ctx, run.ID, stopNotice)
	f.fails("a stop after the end", err, journal.ErrEnded)
	_, err = f.StopRun(f.ctx, "no such run", stopNotice)
	f.fails("a stop of an unknown run", err, journal.ErrNotFound)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Hello."})
}
