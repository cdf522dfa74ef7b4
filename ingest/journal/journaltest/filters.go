package journaltest

import (
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/storage"
)

func filterPromises() []promise {
	return []promise{
		{"threads are listed by state, agent, channel and date", filteredThreads},
		{"runs are listed by state, agent, thread, date and the words of their error", filteredRuns},
		{"the figures of the last hour count messages, answers and failures", figuresOfTheHour},
		{"a question has the message that the agent works on", questionHasItsAsker},
	}
}

func filteredThreads(f *fixture) {
	for n := 1; n <= 4; n++ {
		f.clock.advance(time.Minute)
		f.message(threadKey(n), said(string(threadKey(n))+"/1", "hi"), map[bool]policy{true: triggers, false: passive}[n < 4])
	}
	f.begin(threadKey(1))
	f.fail(f.begin(threadKey(2)), "Sorry.")
	f.commit(f.begin(threadKey(3)), f.asking())
	listed := func(what string, filter listing.ThreadFilter, want ...event.ThreadKey) {
		f.Helper()
		filter.Workspaces, filter.Limit = []string{workspace}, 10
		list, next, err := f.Listing.AllThreads(f.ctx, filter)
		f.must(err)
		same(f, what, each(list, func(t listing.Thread) event.ThreadKey { return t.Key }), append([]event.ThreadKey{}, want...))
		same(f, what+" next", next, "")
		filter.Before = "0-1"
		of, err := f.Listing.ThreadsOf(f.ctx, each(list, func(t listing.Thread) string { return t.ID }), filter)
		f.must(err)
		same(f, what+" by their ids", len(of), len(want))
	}
	all := []event.ThreadKey{threadKey(4), threadKey(3), threadKey(2), threadKey(1)}
	listed("all", listing.ThreadFilter{}, all...)
	listed("of the agent", listing.ThreadFilter{Agent: agent}, threadKey(3), threadKey(2), threadKey(1))
	listed("of another agent", listing.ThreadFilter{Agent: "nobody"})
	listed("of the channel", listing.ThreadFilter{Channel: channel}, all...)
	listed("of another channel", listing.ThreadFilter{Channel: "C9"})
	listed("running", listing.ThreadFilter{State: listing.ThreadRunning}, threadKey(1))
	listed("failed", listing.ThreadFilter{State: listing.ThreadFailed}, threadKey(2))
	listed("asking", listing.ThreadFilter{State: listing.ThreadAsking}, threadKey(3))
	listed("queued", listing.ThreadFilter{State: listing.ThreadQueued})
	f.clock.advance(time.Hour)
	f.message(threadKey(5), said("late", "hi"), passive)
	listed("since", listing.ThreadFilter{Since: f.clock.Now().Add(-time.Minute)}, threadKey(5))
	listed("until", listing.ThreadFilter{Until: f.clock.Now().Add(-time.Minute)}, all...)
	last := func(n int) string {
		t, err := f.Listing.ThreadOf(f.ctx, string(threadKey(n)))
		f.must(err)
		return t.Last
	}
	same(f, "the last runs", []string{last(1), last(2), last(3), last(5)}, []string{"", "failed", "done", ""})
}

func filteredRuns(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.message(threadKey(2), said("C1/2", "hi"), triggers)
	f.message(threadKey(3), said("C1/3", "hi"), triggers)
	f.begin(threadKey(1))
	f.fail(f.begin(threadKey(2)), "Sorry.") // with the error "the agent is gone"
	f.clock.advance(time.Hour)
	f.commit(f.begin(threadKey(3)), answer("Hello."))
	listed := func(what string, filter listing.RunFilter, want ...event.ThreadKey) {
		f.Helper()
		filter.Limit = 10
		list, next, err := f.Listing.ListRuns(f.ctx, filter)
		f.must(err)
		same(f, what, each(list, func(r listing.Run) event.ThreadKey { return r.Thread }), append([]event.ThreadKey{}, want...))
		same(f, what+" next", next, "")
	}
	listed("all", listing.RunFilter{}, threadKey(1), threadKey(3), threadKey(2))
	listed("running", listing.RunFilter{State: "running"}, threadKey(1))
	listed("done", listing.RunFilter{State: "done"}, threadKey(3))
	listed("cancelled", listing.RunFilter{State: "cancelled"})
	listed("of the thread", listing.RunFilter{Thread: string(threadKey(2))}, threadKey(2))
	listed("of the agent", listing.RunFilter{Agent: agent, Workspace: workspace, Channel: channel}, threadKey(1), threadKey(3), threadKey(2))
	listed("of another agent", listing.RunFilter{Agent: "nobody"})
	listed("with an error", listing.RunFilter{Text: "AGENT is"}, threadKey(2))
	listed("a sign of patterns is itself", listing.RunFilter{Text: "agent_is%"})
	listed("until", listing.RunFilter{Until: f.clock.Now().Add(-time.Minute)}, threadKey(1), threadKey(2))
	listed("since", listing.RunFilter{Since: f.clock.Now().Add(-time.Minute)}, threadKey(3))
}

func figuresOfTheHour(f *fixture) {
	hour := func() listing.Hour {
		f.Helper()
		h, err := f.Listing.LastHour(f.ctx)
		f.must(err)
		return h
	}
	same(f, "an empty store", hour(), listing.Hour{})
	f.message(threadKey(1), said("C1/0", "long ago"), passive)
	f.clock.advance(2 * time.Hour)
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.message(threadKey(2), said("C1/2", "hi"), triggers)
	f.clock.advance(10 * time.Minute)
	f.message(threadKey(3), said("C1/3", "hi"), passive)
	for id, ago := range map[string]time.Duration{"C1/0": 130 * time.Minute, "C1/1": 10 * time.Minute, "C1/2": 10 * time.Minute, "C1/3": 0} {
		f.must(f.engine.Write(f.ctx, storage.WriteOptions{}, func(tx storage.Tx) error { // ids are of the time of this machine
			_, err := tx.Exec(`UPDATE messages SET id = $2 || substr(id, 14) WHERE external_id = $1`, id, idOf(f.clock.Now().Add(-ago)))
			return err
		}))
	}
	run := f.begin(threadKey(1))
	f.clock.advance(2 * time.Second)
	f.commit(run, answer("Hello."))
	f.fail(f.begin(threadKey(2)), "Sorry.")
	want := listing.Hour{Messages: 3, Answers: 1, Failures: 1, Median: 2 * time.Second}
	want.ByMinute[49], want.ByMinute[59] = 2, 1
	same(f, "the hour", hour(), want)
}

// idOf returns the beginning of the ids of a time.
func idOf(at time.Time) string {
	const digits = "0123456789abcdef"
	var id []byte
	for i := 44; i >= 0; i -= 4 {
		if id = append(id, digits[at.UnixMilli()>>i&15]); i == 16 {
			id = append(id, '-')
		}
	}
	return string(id)
}

func questionHasItsAsker(f *fixture) {
	f.message(threadKey(1), said("C1/1", "open the valve"), triggers)
	f.message(threadKey(1), said("C1/2", "please"), triggers)
	f.commit(f.begin(threadKey(1)), f.asking())
	list, _, err := f.Listing.Questions(f.ctx, "", 10)
	f.must(err)
	same(f, "asked", []string{list[0].First.Content, list[0].First.SenderID, list[0].Text}, []string{"open the valve", "slack:U1", "May I?"})
}
