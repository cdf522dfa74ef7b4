package journaltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/usage"
)

func usagePromises() []promise {
	return []promise{
		{"runs are summed by agent, person, channel, day and workspace, before and after they are counted", usageSummed},
		{"each run is counted once, with all its attempts, and the sums stay when the run is removed", usageCountedOnce},
		{"a run belongs to the day of its end in the time zone of its workspace", usageOfDays},
		{"tokens that no attempt has reported are unknown", usageUnmeasured},
		{"a stopped run, one that never began, and one of Parley itself have the payer of their messages", usagePayers},
		{"a conversation of our API is in no channel, and its caller is one person under all ids", usageOfAPI},
		{"a forgotten person leaves the sums to nobody, also those of runs that are not counted yet", usageForgotten},
		{"the sums of a day leave after 400 days, and with their workspace", usageAged},
	}
}

// paysFor returns the counters that a sender's tokens are paid from, with bounds that are out of reach.
func paysFor(sender string, at time.Time) []budgets.Budget {
	own, all := budgets.Tokens{PerUser: 1 << 40, PerWorkspace: 1 << 40}.Of(sender, at)
	return append(own, all...)
}

// paid returns the tokens that the workspace has paid.
func (f *fixture) paid() int64 { f.Helper(); return f.counter("all tokens") }

// counter returns what a counter has.
func (f *fixture) counter(name string) (n int64) {
	f.Helper()
	f.must(f.engine.Read(f.ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&n}, `SELECT runs FROM budgets WHERE workspace = $1 AND name = $2`, workspace, name)
		return err
	}))
	return n
}

// used returns the tokens of all runs that have ended.
func (f *fixture) used() (n int64) {
	f.Helper()
	for _, r := range f.sums(usage.Query{By: usage.ByAgent}) {
		n += r.TokensIn + r.TokensOut
	}
	return n
}

// sums returns rows of sums in the order of their keys.
func (f *fixture) sums(q usage.Query) []usage.Row {
	f.Helper()
	rows, err := f.Usage.Of(f.ctx, q)
	f.must(err)
	slices.SortFunc(rows, func(a, b usage.Row) int { return strings.Compare(a.Workspace+" "+a.Key, b.Workspace+" "+b.Key) })
	return rows
}

// sumsIn returns rows of sums as texts.
func (f *fixture) sumsIn(q usage.Query) []string {
	f.Helper()
	return each(f.sums(q), func(r usage.Row) string {
		return fmt.Sprintf("%s: %d asked, %d answered, %d failed, %d ms, %d measured, %d in, %d out", r.Key, r.Questions, r.Answers, r.Failures, r.WorkMS, r.Measured, r.TokensIn, r.TokensOut)
	})
}

// works asks in a thread, and ends the run with an answer, or without one if it has a state.
func (f *fixture) works(thread event.ThreadKey, m *event.Message, state runs.State, in, out int64) {
	f.Helper()
	f.message(thread, m, triggers)
	run := f.begin(thread)
	made := runs.Attempt{BegunAt: f.clock.Now(), TokensIn: in, TokensOut: out}
	f.clock.advance(time.Second)
	if state == runs.Done {
		reply := answer("Hello.")
		reply.Attempt = made
		f.commit(run, reply)
		return
	}
	f.leaves(run, runs.Unanswered{State: state, Cause: "no route", Attempt: made})
}

func usageSummed(f *fixture) {
	f.works(threadKey(1), said("C1/1", "hi"), runs.Done, 10, 2)
	f.works(threadKey(1), said("C1/2", "hi"), runs.Failed, 5, 0)
	f.works(threadKey(2), nora("C1/3", "hi"), runs.Quiet, 1, 1)
	f.works(threadKey(2), nora("C1/4", "hi"), runs.Interrupted, 1, 1)
	day := f.clock.Now().UTC().Format(time.DateOnly)
	check := func(when string) {
		f.Helper()
		all := "4000 ms, 4 measured, 17 in, 4 out"
		for by, want := range map[usage.By][]string{
			usage.ByAgent:     {agent + ": 3 asked, 1 answered, 1 failed, " + all},
			usage.ByChannel:   {channel + ": 3 asked, 1 answered, 1 failed, " + all},
			usage.ByDay:       {day + ": 3 asked, 1 answered, 1 failed, " + all},
			usage.ByWorkspace: {workspace + ": 3 asked, 1 answered, 1 failed, " + all},
			usage.ByPerson: {
				"slack:U1: 2 asked, 1 answered, 1 failed, 2000 ms, 2 measured, 15 in, 2 out",
				"slack:U2NORA: 1 asked, 0 answered, 0 failed, 2000 ms, 2 measured, 2 in, 2 out",
			},
		} {
			same(f, string(by)+" "+when, f.sumsIn(usage.Query{By: by}), want)
			same(f, string(by)+" of another workspace "+when, f.sumsIn(usage.Query{By: by, Workspace: "other"}), []string{})
		}
	}
	check("before")
	f.clock.advance(usage.Settled)
	f.must(f.Usage.Count(f.ctx))
	same(f, "rows", f.count("usage_days"), 2)
	check("after")
}

func usageCountedOnce(f *fixture) {
	want := []string{agent + ": 3 asked, 3 answered, 0 failed, 3000 ms, 6 measured, 33 in, 6 out"}
	for i := range 3 {
		f.message(threadKey(i), said(fmt.Sprint("C1/", i), "hi"), triggers)
		run := f.begin(threadKey(i))
		f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true, Attempt: runs.Attempt{BegunAt: f.clock.Now(), TokensIn: 1, TokensOut: 1}})
		reply := answer("Hello.")
		run, reply.Attempt = f.begin(threadKey(i)), runs.Attempt{BegunAt: f.clock.Now(), TokensIn: 10, TokensOut: 1}
		f.clock.advance(time.Second)
		f.commit(run, reply)
	}
	f.clock.advance(usage.Settled)
	broken, end := context.WithCancel(f.ctx)
	end()
	_ = f.Usage.Count(broken)
	unclear := journal.New(unclearEngine{f.engine}, journal.Options{Now: f.clock.Now})
	f.fails("an unclear count", unclear.Usage.Count(f.ctx), storage.ErrUnclear)
	f.must(f.Usage.Count(f.ctx))
	f.must(f.node("two").Usage.Count(f.ctx))
	same(f, "counted", f.sumsIn(usage.Query{}), want)
	f.clock.advance(90 * day)
	f.prune()
	same(f, "runs", f.count("runs"), 0)
	same(f, "after the runs", f.sumsIn(usage.Query{}), want)
	// A run whose age is over before anybody has counted it is counted by the same pass that removes it.
	f.works(threadKey(5), said("C1/5", "hi"), runs.Done, 1, 0)
	f.clock.advance(usage.Settled)
	retention := journal.DefaultRetention()
	retention.Runs = time.Second
	_, err := f.Prune(f.ctx, retention)
	f.must(err)
	same(f, "runs", f.count("runs"), 0)
	same(f, "and of this one", f.sumsIn(usage.Query{}), []string{agent + ": 4 asked, 4 answered, 0 failed, 4000 ms, 7 measured, 34 in, 6 out"})
}

func usageOfDays(f *fixture) {
	zone := time.FixedZone("east", 5*60*60+30*60)
	f.Journal = journal.New(f.engine, journal.Options{Node: "first", Now: f.clock.Now, Zone: func(string) *time.Location { return zone }})
	local := f.clock.Now().In(zone)
	midnight := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, zone)
	f.clock.advance(midnight.Sub(f.clock.Now()) - 1500*time.Millisecond)
	f.works(threadKey(1), said("C1/1", "hi"), runs.Done, 1, 0)
	f.works(threadKey(1), said("C1/2", "hi"), runs.Done, 2, 0)
	before, after := midnight.AddDate(0, 0, -1).Format(time.DateOnly), midnight.Format(time.DateOnly)
	const rest = ": 1 asked, 1 answered, 0 failed, 1000 ms, 1 measured, "
	for range 2 {
		same(f, "days", f.sumsIn(usage.Query{By: usage.ByDay}), []string{before + rest + "1 in, 0 out", after + rest + "2 in, 0 out"})
		same(f, "since midnight", f.sumsIn(usage.Query{By: usage.ByDay, Since: midnight}), []string{after + rest + "2 in, 0 out"})
		same(f, "since the day before", len(f.sumsIn(usage.Query{By: usage.ByDay, Since: midnight.Add(-time.Hour)})), 2)
		f.clock.advance(usage.Settled)
		f.must(f.Usage.Count(f.ctx))
	}
}

func usageUnmeasured(f *fixture) {
	f.works(threadKey(1), said("C1/1", "hi"), runs.Done, 0, 0)
	same(f, "sums", f.sumsIn(usage.Query{}), []string{agent + ": 1 asked, 1 answered, 0 failed, 1000 ms, 0 measured, 0 in, 0 out"})
}

func usagePayers(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	_, err := f.Runs.StopRun(f.ctx, f.begin(threadKey(1)).ID, outbox.Notice{Text: "Stopped.", Metadata: []byte(`{}`)})
	f.must(err)
	caused := func(id, cause string) *event.Message {
		m := said(id, "go on")
		m.Metadata.SenderID, m.Metadata.SenderType = "system:parley", event.Bot
		m.Metadata.SetCause(cause)
		m.Internal = &event.Internal{ID: id}
		return m
	}
	f.works(threadKey(2), caused("C1/2", "slack:U2NORA"), runs.Done, 0, 0)
	f.works(threadKey(3), caused("C1/3", ""), runs.Done, 0, 0)
	f.message(threadKey(4), said("C1/4", "hi"), triggers)
	f.stopWaiting(threadKey(4))
	same(f, "payers", each(f.sums(usage.Query{By: usage.ByPerson}), func(r usage.Row) string { return fmt.Sprint(r.Key, " ", r.Questions) }),
		[]string{" 1", "slack:U1 2", "slack:U2NORA 1"})
}

// stopWaiting stops the messages that wait in a thread.
func (f *fixture) stopWaiting(key event.ThreadKey) {
	f.Helper()
	_, err := storage.Write(f.ctx, &storage.DB{Engine: f.engine, Now: f.clock.Now}, storage.WriteOptions{}, func(tx *storage.Txn) int {
		runs.StopWaiting(tx, f.thread(key), f.clock.Now().UnixMilli())
		return 0
	})
	f.must(err)
}

func usageOfAPI(f *fixture) {
	for i, sender := range []string{"web:app", "user:7d1f"} {
		key := event.ThreadKey(fmt.Sprint("web:acme:", i))
		m := said(fmt.Sprint("W/", i), "hi")
		m.Metadata.SenderID, m.LimitedAs = sender, "web:app"
		a := f.envelope(event.KindMessage, key, m.ExternalID)
		a.Envelope.Platform, a.Keys.Channel.ID = event.Web, fmt.Sprint("thread-", i)
		accepted := f.accept(a)
		f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: m}, triggers)
		f.commit(f.begin(key), answer("Hello."))
	}
	const rest = ": 2 asked, 2 answered, 0 failed, 0 ms, 0 measured, 0 in, 0 out"
	same(f, "people", f.sumsIn(usage.Query{By: usage.ByPerson}), []string{"web:app" + rest})
	same(f, "channels", f.sumsIn(usage.Query{By: usage.ByChannel}), []string{rest})
}

func usageForgotten(f *fixture) {
	f.works(threadKey(1), leaver("C1/1", "hi"), runs.Done, 1, 0)
	f.works(threadKey(2), nora("C1/2", "hi"), runs.Done, 2, 0)
	f.clock.advance(usage.Settled)
	f.must(f.Usage.Count(f.ctx))
	f.works(threadKey(1), leaver("C1/3", "hi"), runs.Done, 4, 0)
	p, err := f.People.Find(f.ctx, oliviaID)
	f.must(err)
	_, err = f.People.Forget(f.ctx, &p)
	f.must(err)
	want := []string{
		": 2 asked, 2 answered, 0 failed, 2000 ms, 2 measured, 5 in, 0 out",
		"slack:U2NORA: 1 asked, 1 answered, 0 failed, 1000 ms, 1 measured, 2 in, 0 out",
	}
	same(f, "people", f.sumsIn(usage.Query{By: usage.ByPerson}), want)
	f.clock.advance(usage.Settled)
	f.must(f.Usage.Count(f.ctx))
	same(f, "people, counted", f.sumsIn(usage.Query{By: usage.ByPerson}), want)
	same(f, "payers", f.count(`runs WHERE payer = '`+oliviaID+`'`)+f.count(`usage_days WHERE person = '`+oliviaID+`'`), 0)
}

func usageAged(f *fixture) {
	f.works(threadKey(1), said("C1/1", "hi"), runs.Done, 1, 0)
	f.clock.advance(399 * day)
	f.prune()
	same(f, "before", f.count("usage_days"), 1)
	f.clock.advance(2 * day)
	f.prune()
	same(f, "after", f.count("usage_days"), 0)
	f.works(threadKey(1), said("C1/2", "hi"), runs.Done, 1, 0)
	f.clock.advance(usage.Settled)
	f.prune()
	same(f, "of another day", f.count("usage_days"), 1)
	f.must(f.Threads.Configured(f.ctx, []string{workspace}))
	f.must(f.Threads.Configured(f.ctx, []string{"other"}))
	f.clock.advance(31 * day)
	f.prune()
	same(f, "of a removed workspace", f.count("usage_days"), 0)
}
