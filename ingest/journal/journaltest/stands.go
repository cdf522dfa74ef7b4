package journaltest

import (
	"math"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

func inputPromises() []promise {
	return []promise{
		{"an input stands until an event of its thread is due or changes it", inputStands},
		{"the input of a resumed run stands with the reports that have joined it", reportStands},
		{"an envelope that waits for a message of its thread changes the input and comes before the run", missedByRecord},
		{"a waiting message stands until it changes or has a turn", messageStands},
	}
}

// stands reports whether an input may leave.
func (f *fixture) stands(what string, stands bool, err error, want bool) {
	f.Helper()
	f.must(err)
	same(f, what, stands, want)
}

func inputStands(f *fixture) {
	f.message(threadKey(1), said("C1/1", "one"), triggers)
	f.message(threadKey(1), said("C1/2", "two"), triggers)
	run := f.begin(threadKey(1))
	claim := f.claim(run.Thread)
	check := func(what string, want bool) {
		f.Helper()
		stands, err := f.Runs.InputStands(f.ctx, claim, run)
		f.stands(what, stands, err, want)
	}
	check("nothing has changed", true)
	accepted := f.accept(f.envelope(event.KindEdit, threadKey(1), "C1/1"))
	check("an edit is accepted", false)
	f.record(accepted.Thread, accepted.ID, edited("C1/1", "uno", "2"), triggers)
	check("the edit is recorded", false)
	run = f.begin(threadKey(1))
	check("the run is read again", true)
	f.change(threadKey(1), deleted("C1/2"), triggers)
	check("a message is deleted", false)
	f.successor("second").claim(run.Thread)
	_, err := f.Runs.InputStands(f.ctx, claim, run)
	f.fails("another claim", err, storage.ErrFenced)
}

func reportStands(f *fixture) {
	f.message(threadKey(1), said("C1/1", "one"), triggers)
	f.message(threadKey(1), said("C1/2", "two"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("workstream:w1/parent/end", "It is done."), func(m *event.Message, _ record.Look) record.Decision {
		return record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonWorkstream, Metadata: m.Metadata.Bytes()}
	})
	same(f, "joined", contents(f.join(run)), []string{"It is done."})
	f = f.successor("after")
	run = f.begin(threadKey(1))
	same(f, "messages of the resumed run", contents(run.Messages), []string{"one", "two", "It is done."})
	check := func(what string, want bool) {
		f.Helper()
		stands, err := f.Runs.InputStands(f.ctx, f.claim(run.Thread), run)
		f.stands(what, stands, err, want)
	}
	check("nothing has changed", true)
	f.change(threadKey(1), deleted("C1/2"), triggers)
	check("a message is deleted", false)
}

func missedByRecord(f *fixture) {
	f.message(threadKey(1), said("C1/1", "one"), passive)
	f.message(threadKey(1), said("C1/2", "two"), triggers)
	run := f.begin(threadKey(1))
	claim, edit := f.claim(run.Thread), f.waiting("C1/1")
	f.waiting("C1/3")
	begin := func() (*runs.Run, error) {
		return f.Runs.BeginRun(f.ctx, claim, "helper", false, func(*runs.Run) bool { return false }, math.MaxInt64)
	}
	check := func(want bool) {
		f.Helper()
		stands, err := f.Runs.InputStands(f.ctx, claim, run)
		f.stands("the input", stands, err, want)
	}
	check(false)
	f.clock.advance(time.Minute)
	_, err := begin()
	f.fails("the run", err, runs.ErrMissed)
	same(f, "due", f.due(intake), []int64{run.Thread})
	f.record(run.Thread, edit, edited("C1/1", "uno", "2"), triggers)
	again, err := begin()
	f.must(err)
	same(f, "the run", again.ID, run.ID)
	check(true)
}

func messageStands(f *fixture) {
	f.message(threadKey(1), said("C1/1", "one"), triggers)
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/2", "two"), triggers)
	f.message(threadKey(1), said("C1/3", "three"), triggers)
	waiting, err := f.Runs.Joinable(f.ctx, run)
	f.must(err)
	claim := f.claim(run.Thread)
	check := func(what string, n int, want bool) {
		f.Helper()
		stands, err := f.Runs.MessageStands(f.ctx, claim, &waiting[n])
		f.stands(what, stands, err, want)
	}
	check("nothing has changed", 0, true)
	f.change(threadKey(1), edited("C1/2", "due", "2"), triggers)
	check("the message is edited", 0, false)
	check("another message is edited", 1, true)
	f.change(threadKey(1), deleted("C1/3"), triggers)
	check("the message is deleted", 1, false)
	f.successor("second").claim(run.Thread)
	_, err = f.Runs.MessageStands(f.ctx, claim, &waiting[0])
	f.fails("another claim", err, storage.ErrFenced)
}
