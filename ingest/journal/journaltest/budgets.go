package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

func budgetPromises() []promise {
	return []promise{
		{"a budget counts the runs of its window, which begins with the first", budgetWindow},
		{"a client learns when a budget has a run again", budgetExhaustedUntil},
		{"messages that join one turn cost one run", budgetOfOneTurn},
		{"messages for several agents, which join no turn, cost a run each", budgetOfAgents},
		{"an attempt that is repeated, and a second payload of a message, cost nothing", budgetOfRetries},
		{"a budget without a bound only counts", budgetCounts},
		{"each budget of a message bounds it", budgetsTogether},
		{"a sender is told once in a window that a budget is exhausted", budgetNotice},
		{"an edit that asks for a run costs one", budgetOfEdit},
		{"the sender of a message that is edited in a later window is told again", budgetNoticeOfEdit},
		{"concurrent requests in many threads are counted one after the other", budgetAtOnce},
		{"budgets whose window has ended are removed", budgetsPruned},
		{"the tokens of each attempt are paid once, by its sender and its workspace, until the day ends", tokensPaid},
		{"a message is refused when the tokens of the day are used up, and the sender is told once", tokensExhausted},
		{"tokens that are paid after the end of their day leave the next day whole", tokensOfYesterday},
		{"a run that its client named may be asked for again after the limit", budgetOfNamedRun},
	}
}

// hourly is a budget of two runs.
var hourly = budgets.Budget{Name: " slack:U1", Most: 2, Per: time.Hour}

var overLimit = event.Result{Disposition: event.Stored, Reason: event.ReasonLimit}

// over is a policy that answers no message, and tells its sender so.
func over(m *event.Message, _ record.Look, _ budgets.Budget) record.Decision {
	return record.Decision{Trigger: messages.TriggerPassive, Reason: event.ReasonLimit, Metadata: m.Metadata.Bytes(), Tell: &record.Tell{Text: "Later."}}
}

// budgeting is a policy that answers every message of these budgets.
func budgeting(budgets ...budgets.Budget) policy {
	return func(m *event.Message, look record.Look) record.Decision {
		d := triggers(m, look)
		d.Budgets = budgets
		return d
	}
}

// budgeted accepts a message, and returns its entry for the record.
func (f *fixture) budgeted(thread event.ThreadKey, coalesce time.Duration, budgets ...budgets.Budget) (*threads.Claim, record.Entry) {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindMessage, thread, ""))
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said(fmt.Sprintf("C1/m%d", accepted.ID), "hi")}, budgeting(budgets...))
	e.Over, e.Coalesce, e.CoalesceMax = over, coalesce, coalesce
	return f.claim(accepted.Thread), e
}

// demand records a message with budgets.
func (f *fixture) demand(thread event.ThreadKey, coalesce time.Duration, budgets ...budgets.Budget) record.Result {
	f.Helper()
	claim, e := f.budgeted(thread, coalesce, budgets...)
	out, err := f.Recorder.Record(f.ctx, claim, e)
	f.must(err)
	return out
}

func budgetExhaustedUntil(f *fixture) {
	until := func(dedupe string, budgets ...budgets.Budget) time.Time {
		f.Helper()
		t, err := f.Budgets.ExhaustedUntil(f.ctx, workspace, dedupe, budgets)
		f.must(err)
		return t
	}
	daily := budgets.Budget{Name: " all", Most: 1, Per: 24 * time.Hour}
	counted := budgets.Budget{Name: " told", Per: 48 * time.Hour}
	begun := f.clock.Now()
	f.demand(threadKey(1), 0, hourly, daily, counted)
	same(f, "one of two runs", until("new", hourly, counted), time.Time{})
	f.clock.advance(time.Minute)
	f.demand(threadKey(2), 0, hourly, counted)
	same(f, "the last run", until("new", hourly, counted), begun.Add(time.Hour))
	same(f, "two budgets", until("new", hourly, daily), begun.Add(24*time.Hour))
	known := f.envelope(event.KindMessage, threadKey(3), "C1/1")
	f.accept(known)
	same(f, "a payload that was accepted", until(known.Keys.Dedupe, hourly), time.Time{})
	f.clock.advance(time.Hour)
	same(f, "a new window", until("new", hourly), time.Time{})
	quarterly := daily
	quarterly.Per = 15 * time.Minute
	same(f, "a shorter window", until("new", quarterly), time.Time{})
	same(f, "a message in it", f.demand(threadKey(4), 0, quarterly).Result, overLimit)
	same(f, "the shorter window has begun", until("new", quarterly), f.clock.Now().Add(quarterly.Per))
}

func budgetWindow(f *fixture) {
	for i, want := range []event.Result{letIn, letIn, overLimit, overLimit} {
		same(f, fmt.Sprint("message ", i), f.demand(threadKey(i), 0, hourly).Result, want)
		f.clock.advance(10 * time.Minute)
	}
	f.clock.advance(20*time.Minute - time.Millisecond)
	same(f, "before the window's end", f.demand(threadKey(5), 0, hourly).Result, overLimit)
	f.clock.advance(time.Millisecond)
	same(f, "in the next window", f.demand(threadKey(6), 0, hourly).Result, letIn)
	same(f, "another sender", f.demand(threadKey(7), 0, budgets.Budget{Name: " slack:U2", Most: 1, Per: time.Hour}).Result, letIn)
	shorter := hourly
	shorter.Per = time.Minute
	f.demand(threadKey(8), 0, hourly)
	same(f, "a shorter window", f.demand(threadKey(9), 0, shorter).Result, overLimit)
	f.clock.advance(time.Minute)
	same(f, "after a shorter window", f.demand(threadKey(10), 0, shorter).Result, letIn)
}

func budgetOfOneTurn(f *fixture) {
	once := budgets.Budget{Name: " slack:U1", Most: 1, Per: time.Hour}
	for range 3 {
		same(f, "message of one turn", f.demand(threadKey(1), time.Second, once).Result, letIn)
	}
	same(f, "another thread", f.demand(threadKey(2), time.Second, once).Result, overLimit)
	f.clock.advance(time.Second)
	f.commit(f.begin(threadKey(1)), answer("Hello."))
	same(f, "after the turn", f.demand(threadKey(1), time.Second, once).Result, overLimit)
	same(f, "each message a turn", f.demand(threadKey(3), 0, budgets.Budget{Name: "C1 ", Most: 1, Per: time.Hour}).Result, letIn)
	same(f, "each message a turn, again", f.demand(threadKey(3), 0, budgets.Budget{Name: "C1 ", Most: 1, Per: time.Hour}).Result, overLimit)
}

func budgetOfAgents(f *fixture) {
	ask := func(agent string, coalesce time.Duration, run string) event.Result {
		claim, e := f.budgeted(threadKey(1), coalesce, hourly)
		e.Agent, e.Event.Message.RunID = agent, run
		out, err := f.Recorder.Record(f.ctx, claim, e)
		f.must(err)
		return out.Result
	}
	same(f, "the first", ask(agent, time.Second, ""), letIn)
	same(f, "in its turn", ask(agent, time.Second, ""), letIn)
	same(f, "another agent", ask("other", time.Second, ""), letIn)
	same(f, "in its turn", ask("other", time.Second, ""), letIn)
	same(f, "the first agent again", ask(agent, time.Second, ""), overLimit)
	f.clock.advance(time.Hour)
	same(f, "a run with an id of its own", ask("other", 0, "run-1"), letIn)
	same(f, "after that", ask("other", time.Second, ""), letIn)
	same(f, "once more", ask(agent, time.Second, ""), overLimit)
}

func budgetOfRetries(f *fixture) {
	claim, e := f.budgeted(threadKey(1), 0, hourly)
	_, err := f.Recorder.Record(f.ctx, claim, e)
	f.must(err)
	run := f.begin(threadKey(1))
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	f.commit(f.begin(threadKey(1)), answer("Hello."))
	again := f.accept(f.envelope(event.KindMessage, threadKey(1), ""))
	e.Envelope = again.ID
	out, err := f.Recorder.Record(f.ctx, claim, e)
	f.must(err)
	same(f, "the second payload", out.Disposition, event.Duplicate)
	same(f, "the second run", f.demand(threadKey(2), 0, hourly).Result, letIn)
	same(f, "the third run", f.demand(threadKey(3), 0, hourly).Result, overLimit)
}

func budgetCounts(f *fixture) {
	counted := hourly
	counted.Most = 0
	for i := range 3 {
		same(f, "without a bound", f.demand(threadKey(i), 0, counted).Result, letIn)
	}
	same(f, "with a bound", f.demand(threadKey(4), 0, hourly).Result, overLimit)
}

func budgetsTogether(f *fixture) {
	all := budgets.Budget{Name: " ", Most: 3, Per: time.Hour}
	other := budgets.Budget{Name: " slack:U2", Most: 2, Per: time.Hour}
	same(f, "first", f.demand(threadKey(1), 0, hourly, all).Result, letIn)
	same(f, "second", f.demand(threadKey(2), 0, hourly, all).Result, letIn)
	same(f, "above the sender's", f.demand(threadKey(3), 0, hourly, all).Result, overLimit)
	same(f, "another sender", f.demand(threadKey(4), 0, other, all).Result, letIn)
	same(f, "above that of all", f.demand(threadKey(5), 0, other, all).Result, overLimit)
}

func budgetNotice(f *fixture) {
	none := budgets.Budget{Name: " slack:U1", Most: 1, Per: time.Hour}
	f.demand(threadKey(1), 0, none)
	out := f.demand(threadKey(1), 0, none)
	same(f, "told", out.Told, true)
	same(f, "messages", f.lines(threadKey(1)), []string{"1 hi", "2 hi", "3 Later."})
	notice := f.list(threadKey(1))[2]
	same(f, "author", notice.Author, messages.BySystem)
	d := f.delivery(threadKey(1))
	same(f, "kind", d.Kind, outbox.KindTell)
	same(f, "post", d.Post, outbox.Post{Channel: channel, Place: "1", Text: "Later.", Asker: "U1"})
	f.deliver(threadKey(1), "")
	claim, e := f.budgeted(threadKey(1), 0, none)
	e.Notice = nil // it is not called
	again, err := f.Recorder.Record(f.ctx, claim, e)
	f.must(err)
	same(f, "told again", again.Told, false)
	other := budgets.Budget{Name: " slack:U2", Most: 1, Per: time.Hour}
	f.demand(threadKey(4), 0, other)
	for _, told := range []bool{false, true} {
		same(f, "a third sender is told", f.demand(threadKey(4), 0, budgets.Budget{Name: " slack:U3", Most: 1, Per: time.Hour}).Told, told)
	}
	same(f, "another sender is told", f.demand(threadKey(4), 0, other).Told, true)
	run := f.begin(threadKey(1))
	same(f, "the run", contents(run.Messages), []string{"hi"})
	reply := answer("Hello.")
	reply.Stale = "drop"
	same(f, "the reply, which the notice does not make stale", f.commit(run, reply).State, runs.Done)
	f.clock.advance(time.Hour)
	same(f, "in the next window", f.demand(threadKey(2), 0, none).Result, letIn)
	same(f, "told in the next window", f.demand(threadKey(3), 0, none).Told, true)
}

func budgetOfEdit(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hello"), passive)
	accepted := f.accept(f.envelope(event.KindEdit, threadKey(1), "C1/1"))
	once := budgets.Budget{Name: " slack:U1", Most: 1, Per: time.Hour}
	e := entry(accepted.ID, edited("C1/1", "@bot hello", "2"), budgeting(once))
	e.Over = over
	out, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
	same(f, "the edit", out.Trigger, messages.TriggerRun)
	out = f.demand(threadKey(2), 0, once)
	same(f, "after the edit", out.Result, overLimit)
	same(f, "told", out.Told, true)

	f.message(threadKey(3), said("C1/3", "hello"), passive)
	f.message(threadKey(3), said("C1/4", "@bot hello"), triggers)
	f.begin(threadKey(3))
	for _, id := range []string{"C1/3", "C1/4"} { // the run has seen both
		accepted := f.accept(f.envelope(event.KindEdit, threadKey(3), id))
		e := entry(accepted.ID, edited(id, "@bot hello again", "2"), budgeting(budgets.Budget{Name: " slack:U1", Most: 1, Per: time.Hour}))
		e.Over = over
		out, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
		f.must(err)
		same(f, id, out.Told || out.Reason == event.ReasonLimit, false)
	}
}

func budgetNoticeOfEdit(f *fixture) {
	once := budgets.Budget{Name: " slack:U1", Most: 1, Per: time.Hour}
	f.demand(threadKey(1), 0, once)
	same(f, "told", f.demand(threadKey(2), 0, once).Told, true)
	f.clock.advance(time.Hour)
	f.demand(threadKey(3), 0, once)
	m := f.list(threadKey(2))[0]
	accepted := f.accept(f.envelope(event.KindEdit, threadKey(2), m.ExternalID))
	e := entry(accepted.ID, edited(m.ExternalID, "@bot hello", "2"), budgeting(once))
	e.Over = over
	out, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
	same(f, "told of the edit", out.Told, true)
	same(f, "deliveries", f.count("deliveries"), 2)
}

func budgetOfNamedRun(f *fixture) {
	once := budgets.Budget{Name: " slack:U1", Most: 1, Per: time.Hour}
	ask := func() record.Result {
		request := f.envelope(event.KindMessage, threadKey(1), "")
		request.Keys.Dedupe = event.RunKey(f.threadID(threadKey(1)), "run-1")
		accepted := f.accept(request)
		e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: asks("", "hi", "run-1")}, budgeting(once))
		e.Over = over
		out, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
		f.must(err)
		return out
	}
	f.demand(threadKey(2), 0, once)
	for range 2 {
		same(f, "above the limit", ask().Result, *event.Ignore(event.ReasonLimit))
	}
	_, err := f.Runs.NamedRun(f.ctx, workspace, "", f.threadID(threadKey(1)), "run-1")
	f.fails("the run", err, storage.ErrNotFound)
	f.clock.advance(time.Hour)
	same(f, "within the limit", ask().Result, letIn)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi"})
}

func budgetAtOnce(f *fixture) {
	const most = 10
	results, errs := make([]event.Result, most+5), make([]error, most+5)
	var wait sync.WaitGroup
	for i := range results {
		claim, e := f.budgeted(threadKey(i), time.Second, budgets.Budget{Name: fmt.Sprint(" slack:U", i), Per: time.Hour}, budgets.Budget{Name: " ", Most: most, Per: time.Hour})
		wait.Go(func() {
			var out record.Result
			out, errs[i] = f.Recorder.Record(f.ctx, claim, e)
			results[i] = out.Result
		})
	}
	wait.Wait()
	f.must(errors.Join(errs...))
	same(f, "let in", len(slices.DeleteFunc(results, func(result event.Result) bool { return result != letIn })), most)
}

func budgetsPruned(f *fixture) {
	f.demand(threadKey(1), 0, hourly)
	prune := func() {
		_, err := f.Prune(f.ctx, journal.DefaultRetention())
		f.must(err)
	}
	prune()
	same(f, "during the window", f.count("budgets"), 1)
	f.clock.advance(time.Hour)
	prune()
	same(f, "after the window", f.count("budgets"), 0)
}

// aDay are the limits of tokens of the tests.
var aDay = budgets.Tokens{PerUser: 100, PerWorkspace: 1000}

// tokensOf returns the counters of a sender's tokens now.
func (f *fixture) tokensOf(sender string) []budgets.Budget {
	own, all := aDay.Of(sender, f.clock.Now())
	return append(own, all...)
}

// spends returns an attempt that ends now with tokens of U1.
func (f *fixture) spends(in, out int64) runs.Attempt {
	return runs.Attempt{BegunAt: f.clock.Now(), TokensIn: in, TokensOut: out, Pays: f.tokensOf("slack:U1")}
}

func tokensPaid(f *fixture) {
	both := func(what string, want int64) {
		f.Helper()
		same(f, what, []int64{f.counter("tokens of slack:U1"), f.counter("all tokens")}, []int64{want, want})
	}
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true, Attempt: f.spends(10, 1)})
	both("a failed attempt", 11)
	run = f.begin(threadKey(1))
	reply := answer("Hello.")
	reply.Attempt = f.spends(20, 2)
	unclear := journal.New(unclearEngine{f.engine}, journal.Options{Node: "first", Now: f.clock.Now})
	_, err := unclear.Runs.CommitReply(f.ctx, f.claim(run.Thread), run, reply)
	f.fails("the commit", err, storage.ErrUnclear)
	reply.Again = true
	same(f, "again", f.commit(run, reply).State, runs.Done)
	both("an answer whose commit was repeated", 33)
	f.message(threadKey(2), said("C1/2", "hi"), triggers)
	stopped := f.begin(threadKey(2))
	_, err = f.Runs.StopRun(f.ctx, stopped.ID, outbox.Notice{Text: "Stopped.", Metadata: []byte(`{}`)})
	f.must(err)
	f.must(f.Runs.AddAttempt(f.ctx, stopped, f.spends(5, 0)))
	both("a stopped run", 38)
	f.message(threadKey(3), said("C1/3", "hi"), triggers)
	run = f.begin(threadKey(3))
	f.leaves(run, runs.Unanswered{State: runs.Interrupted, Attempt: f.spends(2, 0)})
	both("an interrupted run", 40)
	// The process dies during the next attempt, and the run is answered by another one.
	lost := f.begin(threadKey(3))
	next := f.successor("second")
	reply = answer("Hello.")
	reply.Attempt = next.spends(3, 0)
	next.commit(next.begin(threadKey(3)), reply)
	_, err = f.Runs.CommitReply(f.ctx, f.claim(lost.Thread), lost, reply)
	f.fails("the lost one", err, storage.ErrFenced)
	both("after a crash", 43)
	f.message(threadKey(4), said("C1/4", "hi"), triggers)
	f.commit(f.begin(threadKey(4)), answer("Hello."))
	both("an attempt without counts", 43)
}

func tokensExhausted(f *fixture) {
	user := f.tokensOf("slack:U1")
	f.demand(threadKey(1), 0, user...)
	reply := answer("Hello.")
	reply.Attempt = f.spends(90, 9)
	f.commit(f.begin(threadKey(1)), reply)
	same(f, "one token is left", f.demand(threadKey(1), 0, user...).Result, letIn)
	reply.Attempt = f.spends(90, 0) // the last run may end above the limit
	f.commit(f.begin(threadKey(1)), reply)
	var spent []budgets.Budget
	refuses := func() record.Result {
		f.Helper()
		claim, e := f.budgeted(threadKey(1), 0, user...)
		e.Over = func(m *event.Message, look record.Look, b budgets.Budget) record.Decision {
			spent = append(spent, b)
			return over(m, look, b)
		}
		out, err := f.Recorder.Record(f.ctx, claim, e)
		f.must(err)
		return out
	}
	out := refuses()
	same(f, "refused", out.Result, overLimit)
	same(f, "told", out.Told, true)
	same(f, "told again", refuses().Told, false)
	same(f, "by the sender's tokens", spent[0], user[0])
	same(f, "another sender", f.demand(threadKey(2), 0, f.tokensOf("slack:U2")...).Result, letIn)
	until, err := f.Budgets.ExhaustedUntil(f.ctx, workspace, "new", user)
	f.must(err)
	same(f, "until", until.Equal(user[0].Until), true)
	next := user[0].Until
	f.clock.advance(next.Sub(f.clock.Now()))
	same(f, "the next day", f.demand(threadKey(3), 0, f.tokensOf("slack:U1")...).Result, letIn)
}

func tokensOfYesterday(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run, late := f.begin(threadKey(1)), answer("Hello.")
	late.Attempt = f.spends(50, 0)
	f.clock.advance(late.Attempt.Pays[0].Until.Sub(f.clock.Now()))
	f.message(threadKey(2), said("C1/2", "hi"), triggers)
	reply := answer("Hello.")
	reply.Attempt = f.spends(7, 0)
	f.commit(f.begin(threadKey(2)), reply)
	f.commit(run, late)
	same(f, "of today", f.counter("tokens of slack:U1"), 7)
}
