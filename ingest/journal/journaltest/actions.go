package journaltest

import (
	"time"

	"parley/ingest/journal"
	"parley/ingest/journal/audit"
)

func actionPromises() []promise {
	return []promise{
		{"an action is stored before it is done, and with its result or its error afterwards", actionIsStored},
		{"a repetition with the same key gets the first result, on any node", actionOnce},
		{"a process that dies leaves an action that a repetition does again", actionLeftOff},
		{"actions are listed in pages, the newest first, and end with their age", actionPages},
	}
}

// beginAction begins an action of mara's.
func (f *fixture) beginAction(what, key string) audit.Action {
	f.Helper()
	a, err := f.Audit.BeginAction(f.ctx, audit.Action{Who: "mara", What: what, Subject: "7", Note: "why", Key: key})
	f.must(err)
	return a
}

func (f *fixture) actions(before int64, limit int) []audit.Action {
	f.Helper()
	list, err := f.Audit.Actions(f.ctx, before, limit)
	f.must(err)
	return list
}

func actionIsStored(f *fixture) {
	a := f.beginAction("dead.discard", "")
	want := audit.Action{ID: a.ID, At: f.clock.Now(), Who: "mara", What: "dead.discard", Subject: "7", Note: "why"}
	same(f, "begun", f.actions(0, 10), []audit.Action{want})
	f.must(f.Audit.EndAction(f.ctx, a.ID, `{"id":7}`))
	failed := f.beginAction("dead.retry", "")
	f.must(f.Audit.FailAction(f.ctx, failed.ID, "the store is full"))
	want.Result = `{"id":7}`
	other := audit.Action{ID: failed.ID, At: want.At, Who: "mara", What: "dead.retry", Subject: "7", Note: "why", Error: "the store is full"}
	same(f, "ended", f.actions(0, 10), []audit.Action{other, want})
}

func actionOnce(f *fixture) {
	first := f.beginAction("dead.retry", "k")
	_, err := f.Audit.BeginAction(f.ctx, audit.Action{Who: "mara", What: "dead.retry", Subject: "7", Key: "k"})
	f.fails("a concurrent repetition", err, audit.ErrBusy)
	f.must(f.Audit.EndAction(f.ctx, first.ID, `{"n":1}`))
	again := f.node("second").beginAction("dead.retry", "k")
	same(f, "the result", again.Result, `{"n":1}`)
	same(f, "the action", again.ID, first.ID)
	_, err = f.Audit.BeginAction(f.ctx, audit.Action{Who: "mara", What: "dead.discard", Subject: "7", Key: "k"})
	f.fails("another action", err, audit.ErrOtherAction)
	_, err = f.Audit.BeginAction(f.ctx, audit.Action{Who: "mara", What: "dead.retry", Subject: "8", Key: "k"})
	f.fails("another subject", err, audit.ErrOtherAction)
	other, err := f.Audit.BeginAction(f.ctx, audit.Action{Who: "olivia", What: "dead.retry", Subject: "7", Key: "k"})
	f.must(err)
	same(f, "the key of another operator", other.Result, "")
	f.must(f.Audit.FailAction(f.ctx, other.ID, "no"))
	retried, err := f.Audit.BeginAction(f.ctx, audit.Action{Who: "olivia", What: "dead.retry", Subject: "7", Key: "k"})
	f.must(err)
	same(f, "a failed action is another one", retried.ID != other.ID && retried.Result == "", true)
}

func actionLeftOff(f *fixture) {
	first := f.beginAction("runs.stop", "k")
	f.clock.advance(2 * time.Minute)
	again := f.successor("next").beginAction("runs.stop", "k")
	same(f, "the action", again.ID, first.ID)
	same(f, "the result", again.Result, "")
	_, err := f.Audit.BeginAction(f.ctx, audit.Action{Who: "mara", What: "runs.stop", Subject: "7", Key: "k"})
	f.fails("a third request", err, audit.ErrBusy)
}

func actionPages(f *fixture) {
	var ids []int64
	for range 3 {
		ids = append(ids, f.beginAction("reload", "").ID)
	}
	id := func(a audit.Action) int64 { return a.ID }
	same(f, "the first page", each(f.actions(0, 2), id), []int64{ids[2], ids[1]})
	same(f, "the second page", each(f.actions(ids[1], 2), id), []int64{ids[0]})
	f.clock.advance(366 * 24 * time.Hour)
	_, err := f.Prune(f.ctx, journal.DefaultRetention())
	f.must(err)
	same(f, "after a year", f.count("operator_log"), 0)
}
