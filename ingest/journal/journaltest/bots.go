package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
)

func botPromises() []promise {
	return []promise{
		{"runs begun by bots are counted by channel", botRuns},
		{"requested runs of bots in many threads count before they begin", botsInManyThreads},
		{"runs of bots that a faulty clock dated into the future do not count", botsOfTheFuture},
		{"concurrent requests of bots in many threads are counted one after the other", botsAtOnce},
		{"messages of bots that join one turn count once", botsInOneTurn},
		{"if each message is a turn, each message of a bot counts", botsEachTheirTurn},
		{"a run that a bot requested counts once, however often it begins", botsCountOnce},
		{"a run that a bot requested and that never began does not count", botsInVain},
		{"a bot's message that joins a run counts with it", botsTakenOver},
		{"a bot's message that cannot join a run counts beside it", botsLeftBehind},
		{"messages that ask for runs with the words of an earlier post of ours are counted", echoes},
	}
}

func botRuns(f *fixture) {
	var seen []int
	counting := func(m *event.Message, look record.Look) record.Decision {
		seen = append(seen, look.BotRuns(channel, f.clock.Now().Add(-time.Minute)))
		return triggers(m, look)
	}
	for i := range 4 {
		m := said(fmt.Sprintf("C1/%d", i), "beep")
		if i != 2 {
			m.Metadata.SenderType = event.Bot
		}
		f.message(threadKey(1), m, counting)
		f.commit(f.begin(threadKey(1)), answer("boop"))
		f.clock.advance(25 * time.Second)
	}
	same(f, "runs that bots had begun", seen, []int{0, 1, 2, 1})
}

// botLimit bounds the runs that bots may begin in a channel in five minutes.
const botLimit = 10

// guarded is a policy that passes bots' requests for runs up to botLimit.
func (f *fixture) guarded(m *event.Message, look record.Look) record.Decision {
	if look.BotRuns(channel, f.clock.Now().Add(-5*time.Minute)) >= botLimit {
		return record.Decision{Trigger: messages.TriggerPassive, Reason: event.ReasonLoopGuard, Metadata: m.Metadata.Bytes()}
	}
	return triggers(m, look)
}

// botMessage accepts a bot's message, and returns its entry for the record.
func (f *fixture) botMessage(thread event.ThreadKey, coalesce time.Duration) (*threads.Claim, record.Entry) {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindMessage, thread, ""))
	m := said(fmt.Sprintf("C1/b%d", accepted.ID), "beep")
	m.Metadata.SenderType = event.Bot
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: m}, f.guarded)
	e.Coalesce, e.CoalesceMax = coalesce, coalesce
	return f.claim(accepted.Thread), e
}

// recordBot records a bot's message and returns the reason of its result.
func (f *fixture) recordBot(thread event.ThreadKey, coalesce time.Duration) event.Result {
	f.Helper()
	lease, e := f.botMessage(thread, coalesce)
	out, err := f.Recorder.Record(f.ctx, lease, e)
	f.must(err)
	return out.Result
}

// askedByBots returns how many runs of bots count now.
func (f *fixture) askedByBots() (n int) {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(99), ""))
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said(fmt.Sprintf("C1/h%d", accepted.ID), "?")},
		func(m *event.Message, look record.Look) record.Decision {
			n = look.BotRuns(channel, f.clock.Now().Add(-5*time.Minute))
			return passive(m, look)
		})
	e.Coalesce = time.Second
	_, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
	return n
}

var (
	letIn  = event.Result{Disposition: event.Stored, Reason: event.ReasonMention}
	enough = event.Result{Disposition: event.Stored, Reason: event.ReasonLoopGuard}
)

func botsInManyThreads(f *fixture) {
	for i := range botLimit + 2 {
		want := letIn
		if i >= botLimit {
			want = enough
		}
		same(f, fmt.Sprint("message ", i), f.recordBot(threadKey(i), time.Second), want)
	}
	same(f, "a bot's second message of a turn", f.recordBot(threadKey(1), time.Second), letIn)
	f.clock.advance(time.Second)
	for i := range botLimit {
		f.commit(f.begin(threadKey(i)), answer("boop"))
	}
	same(f, "counted", f.askedByBots(), botLimit)
	same(f, "at the limit", f.recordBot(threadKey(20), time.Second), enough)
	f.clock.advance(5 * time.Minute)
	same(f, "later", f.recordBot(threadKey(21), time.Second), letIn)
}

func botsOfTheFuture(f *fixture) {
	for round, ended := range []bool{true, false} {
		first := 30 * round
		for i := range botLimit {
			f.recordBot(threadKey(first+i), 0)
			if run := f.begin(threadKey(first + i)); ended {
				f.commit(run, answer("boop"))
			}
		}
		same(f, "at the limit", f.recordBot(threadKey(first+20), 0), enough)
		f.clock.advance(-time.Hour)
		same(f, "after the clock was set right", f.recordBot(threadKey(first+20), 0), letIn)
		f.begin(threadKey(first + 20))
		f.clock.advance(-time.Hour)
	}
}

func botsAtOnce(f *fixture) {
	results, errs := make([]event.Result, botLimit+2), make([]error, botLimit+2)
	var wait sync.WaitGroup
	for i := range results {
		lease, e := f.botMessage(threadKey(i), time.Second)
		wait.Go(func() {
			var out record.Result
			out, errs[i] = f.Recorder.Record(f.ctx, lease, e)
			results[i] = out.Result
		})
	}
	wait.Wait()
	f.must(errors.Join(errs...))
	let := slices.DeleteFunc(slices.Clone(results), func(result event.Result) bool { return result != letIn })
	same(f, "let in", len(let), botLimit)
}

func botsInOneTurn(f *fixture) {
	for range 2 * botLimit {
		same(f, "message", f.recordBot(threadKey(1), time.Second), letIn)
	}
	same(f, "counted", f.askedByBots(), 1)
	f.clock.advance(time.Second)
	f.commit(f.begin(threadKey(1)), answer("boop"))
	same(f, "counted after its run", f.askedByBots(), 1)
	f.recordBot(threadKey(1), time.Second)
	f.clock.advance(time.Second)
	run := f.begin(threadKey(1))
	f.clock.advance(5 * time.Minute)
	same(f, "counted five minutes after a run began that has not ended", f.askedByBots(), 0)
	f.commit(run, answer("boop"))
}

func botsEachTheirTurn(f *fixture) {
	f.message(threadKey(1), said("C1/1", "a person waits too"), triggers)
	for range botLimit {
		same(f, "message", f.recordBot(threadKey(1), 0), letIn)
	}
	f.commit(f.mayBegin(threadKey(1), true), answer("Hello."))
	for range botLimit {
		same(f, "above the limit", f.recordBot(threadKey(1), 0), enough)
		f.commit(f.mayBegin(threadKey(1), true), answer("boop"))
	}
	same(f, "counted", f.askedByBots(), botLimit)
	same(f, "turns", f.due(turns), nil)
}

func botsCountOnce(f *fixture) {
	f.recordBot(threadKey(1), time.Second)
	f.clock.advance(time.Second)
	first := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.leaves(first, runs.Unanswered{State: runs.Interrupted})
	same(f, "count after an interruption", f.askedByBots(), 1)
	second := f.begin(threadKey(1))
	same(f, "asked again", contents(second.Messages), []string{"beep", "hi"})
	same(f, "count after the second begin", f.askedByBots(), 1)
	f.leaves(second, runs.Unanswered{At: f.clock.Now(), Failed: true})
	f.commit(f.begin(threadKey(1)), answer("boop"))
	same(f, "count after a retry", f.askedByBots(), 1)
}

func botsInVain(f *fixture) {
	lease, e := f.botMessage(threadKey(1), time.Second)
	_, err := f.Recorder.Record(f.ctx, lease, e)
	f.must(err)
	f.change(threadKey(1), deleted(e.Event.Message.ExternalID), nil)
	f.clock.advance(time.Second)
	same(f, "the turn has no message left", f.mayBegin(threadKey(1), false) == nil, true)
	same(f, "counted", f.askedByBots(), 0)
}

func botsTakenOver(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.recordBot(threadKey(1), time.Second)
	reply := answer("Hello.")
	reply.Stale = "rerun"
	same(f, "result", f.commit(run, reply).State, runs.Unfinished)
	same(f, "counted", f.askedByBots(), 1)
	f.commit(f.begin(threadKey(1)), reply)
	same(f, "counted afterwards", f.askedByBots(), 1)
}

// botsLeftBehind joins a person's message to a run while a bot's message waits for another agent.
func botsLeftBehind(f *fixture) {
	counted := 0
	for name, join := range map[string]func(*runs.Run){
		"steer": func(run *runs.Run) { f.join(run) },
		"rerun": func(run *runs.Run) {
			reply := answer("Hello.")
			reply.Stale = "rerun"
			same(f, "result", f.commit(run, reply).State, runs.Unfinished)
		},
	} {
		for _, asker := range []event.SenderType{event.Human, event.Bot} {
			thread := event.ThreadKey(fmt.Sprintf("slack:acme:C1:%s %s", name, asker))
			first := said(fmt.Sprintf("C1/1 %s", thread), "hi")
			first.Metadata.SenderType = asker
			f.message(thread, first, triggers)
			run := f.begin(thread)
			lease, e := f.botMessage(thread, time.Second)
			e.Agent = "other"
			_, err := f.Recorder.Record(f.ctx, lease, e)
			f.must(err)
			f.message(thread, said(fmt.Sprintf("C1/2 %s", thread), "and?"), triggers)
			join(run)
			if counted++; asker == event.Bot {
				counted++ // the run
			}
			same(f, fmt.Sprintf("counted after %s of a run of a %s", name, asker), f.askedByBots(), counted)
		}
	}
}

func echoes(f *fixture) {
	n := 0
	echoes := func(thread event.ThreadKey, content string) (count int) {
		n++
		f.message(thread, said(fmt.Sprint("C1/look-", n), content), func(m *event.Message, look record.Look) record.Decision {
			count = look.Echoes(content, f.clock.Now().Add(-time.Minute))
			return passive(m, look)
		})
		return count
	}
	f.exchange(threadKey(1), "C1/1", "Hello.", "Hello. Bye.", "Hello.", "Bye.")
	f.exchange(threadKey(2), "C1/2", "Hello.", "Hello. Bye.", "Hello.", "Bye.")
	same(f, "before the post", echoes(threadKey(1), "Hello."), 0)
	f.message(threadKey(1), said("C1/3", "Hello."), triggers)
	f.message(threadKey(1), said("C1/4", "Bye."), triggers)
	f.message(threadKey(1), said("C1/5", "something else"), triggers)
	robot := said("C1/6", "Bye.")
	robot.Metadata.SenderType = event.Bot
	f.message(threadKey(1), robot, triggers)
	same(f, "after both posts", echoes(threadKey(1), "Hello."), 2)
	same(f, "of other words", echoes(threadKey(1), "something else"), 0)
	same(f, "of no words", echoes(threadKey(1), ""), 0)
	same(f, "in another thread", echoes(threadKey(2), "Hello."), 0)
	f.clock.advance(time.Minute)
	same(f, "a minute later", echoes(threadKey(1), "Hello."), 0)
	f.clock.advance(-time.Hour)
	same(f, "after the clock was set right", echoes(threadKey(1), "Hello."), 0)
}
