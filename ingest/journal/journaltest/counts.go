package journaltest

import (
	"time"

	"parley/ingest/journal/listing"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
)

func countPromises() []promise {
	return []promise{
		{"the counts of operators name what waits, what failed and who is asked", countsOfOperators},
		{"a failed run counts for a day, or until its messages are asked again", countsOfFailedRuns},
	}
}

func countsOfOperators(f *fixture) {
	counts := func() listing.Counts {
		f.Helper()
		c, err := f.Listing.Counts(f.ctx, []string{workspace, "other"})
		f.must(err)
		return c
	}
	empty := listing.Counts{Workspaces: map[string]listing.WorkspaceCounts{workspace: {}, "other": {}}, Running: map[string]int64{}}
	same(f, "an empty store", counts(), empty)
	key := threadKey(1)
	f.message(key, said("1", "@bot hello"), triggers)
	run := f.begin(key)
	f.accept(f.envelope("message", key, "2"))
	want := empty
	want.Workspaces = map[string]listing.WorkspaceCounts{workspace: {LastAt: f.clock.Now(), Waiting: 1}, "other": {}}
	want.Running = map[string]int64{agent: 1}
	same(f, "one message is answered, one waits", counts(), want)
	reply := answer("Which one?")
	reply.Question = &runs.Question{Ask: stream.Ask{}, UntilAt: f.clock.Now().Add(time.Hour)}
	f.commit(run, reply)
	want.Running, want.Questions = map[string]int64{}, 1
	same(f, "the agent asks", counts(), want)
	f.clock.advance(time.Hour)
	want.Questions = 0
	same(f, "nobody answered in time", counts(), want)
}

func countsOfFailedRuns(f *fixture) {
	failed := func() int64 {
		f.Helper()
		c, err := f.Listing.Counts(f.ctx, nil)
		f.must(err)
		return c.FailedRuns
	}
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.message(threadKey(2), said("C2/1", "hi"), triggers)
	first, second := f.begin(threadKey(1)), f.begin(threadKey(2))
	f.fail(first, "Sorry.")
	f.fail(second, "Sorry.")
	same(f, "two failed", failed(), 2)
	_, err := f.Runs.RetryRun(f.ctx, first.ID)
	f.must(err)
	same(f, "one is asked again", failed(), 1)
	f.clock.advance(listing.FailedFor + time.Second)
	same(f, "a day later", failed(), 0)
}
