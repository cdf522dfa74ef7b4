package journaltest

import (
	"errors"
	"fmt"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

func schedulePromises() []promise {
	return []promise{
		{"a tick is taken once, at its time, and its question is due until it is asked", tickOnce},
		{"a tick is taken once, though the clock is set back", tickClock},
		{"after a downtime at most the last tick runs, if it may and is young enough", tickMissed},
		{"a tick is skipped while the run before still works", tickWorks},
		{"the result of a tick is that of its run and of its posts", tickResults},
		{"a schedule keeps its next tick while its times stay the same, and a removed one asks no more", scheduleSync},
		{"a paused schedule does not tick, except by hand, and leaves out the ticks of its pause", schedulePause},
		{"a thread has at most 20 schedules that wait, each once by its id, and cancels its own alone", scheduleOfThread},
		{"old ticks are removed, and the schedules of threads that have none left", scheduleRetention},
	}
}

// everyHour returns a schedule that ticks at each full hour.
func everyHour(change func(s *schedules.Schedule)) schedules.Schedule {
	s := schedules.Schedule{Workspace: workspace, ID: "hourly", Plan: schedules.Plan{Timing: schedules.Timing{Cron: "0 * * * *"}, Prompt: "hi", Channel: channel}}
	if change != nil {
		change(&s)
	}
	return s
}

// sync makes the schedules of the workspace's file those of a list.
func (f *fixture) sync(list ...schedules.Schedule) {
	f.Helper()
	f.must(f.Schedules.Sync(f.ctx, workspace, list))
}

// until advances the clock to a minute of the next hours, and takes the due ticks.
func (f *fixture) until(hours, minute int) (skipped int) {
	f.Helper()
	at := f.clock.Now().Truncate(time.Hour).Add(time.Duration(hours)*time.Hour + time.Duration(minute)*time.Minute)
	f.clock.advance(at.Sub(f.clock.Now()))
	return f.take()
}

func (f *fixture) take() (skipped int) {
	f.Helper()
	_, left, err := f.Schedules.TakeTicks(f.ctx, []string{workspace}, 100)
	f.must(err)
	return left[workspace]
}

// dueTicks returns the ticks whose questions are due.
func (f *fixture) dueTicks() []schedules.DueTick {
	f.Helper()
	list, err := f.Schedules.DueTicks(f.ctx, map[string]schedules.Room{"other": {First: 100, Again: 100}, workspace: {First: 100, Again: 100}}, time.Minute)
	f.must(err)
	return list
}

// due returns the only tick whose question is due.
func (f *fixture) dueTick() *schedules.DueTick {
	f.Helper()
	list := f.dueTicks()
	if len(list) != 1 {
		f.Fatalf("%d ticks are due", len(list))
	}
	return &list[0]
}

// askTick records the question of a tick in its thread, and begins its run.
func (f *fixture) askTick(t *schedules.DueTick) *runs.Run {
	f.Helper()
	m := said(t.Message, "hi")
	m.RunID, m.Internal = t.Message, &event.Internal{Schedule: t.Schedule}
	f.message(event.TickThread(t.Message), m, decided(record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonSchedule}))
	f.must(f.Schedules.Asked(f.ctx, &t.Tick, false))
	return f.begin(event.TickThread(t.Message))
}

func (f *fixture) status(id string) schedules.Status {
	f.Helper()
	s, err := f.Schedules.ScheduleStatus(f.ctx, workspace, id)
	f.must(err)
	return s
}

func tickOnce(f *fixture) {
	f.sync(everyHour(nil))
	f.take()
	same(f, "before its time", len(f.dueTicks()), 0)
	planned := f.status("hourly").NextAt
	f.until(1, 0)
	same(f, "the next one", f.status("hourly").NextAt, planned.Add(time.Hour))
	t := f.dueTick()
	same(f, "its time", t.PlannedAt, planned)
	same(f, "what it asks", t.Of.Prompt, "hi")
	f.take()
	same(f, "while a node has it", len(f.dueTicks()), 0)
	f.clock.advance(time.Minute)
	again := f.dueTick()
	same(f, "after its node has gone", again.Message, t.Message)
	same(f, "its tries", again.Tries, int64(2))
	f.must(f.Schedules.PostponeTick(f.ctx, &again.Tick, f.clock.Now().Add(time.Second), "busy"))
	f.clock.advance(time.Second)
	last := f.dueTick()
	f.must(f.Schedules.PostponeTick(f.ctx, &again.Tick, f.clock.Now(), "too late")) // another try has begun
	same(f, "of another try", len(f.dueTicks()), 0)
	f.must(f.Schedules.Asked(f.ctx, &last.Tick, true))
	f.clock.advance(2 * time.Minute)
	same(f, "after it was asked", len(f.dueTicks()), 0)
	same(f, "the root", f.status("hourly").Root, t.Message)
	due, err := f.Schedules.SchedulesDue(f.ctx, []string{workspace})
	f.must(err)
	same(f, "anything due", due, false)
	f.until(1, 0)
	for _, of := range []string{workspace, "other"} {
		due, err = f.Schedules.SchedulesDue(f.ctx, []string{of})
		f.must(err)
		same(f, "due for "+of, due, of == workspace)
	}
	list, err := f.Schedules.DueTicks(f.ctx, map[string]schedules.Room{"other": {First: 10, Again: 10}}, time.Minute)
	f.must(err)
	same(f, "of other workspaces", len(list), 0)
}

func tickClock(f *fixture) {
	f.sync(everyHour(nil))
	f.until(1, 0)
	first := f.dueTick()
	f.must(f.Schedules.Asked(f.ctx, &first.Tick, false))
	f.clock.advance(-30 * time.Minute)
	f.take()
	f.sync(everyHour(nil)) // a restart plans the tick again
	f.until(1, 0)
	same(f, "the same tick", len(f.dueTicks()), 0)
	f.clock.advance(3 * time.Hour) // the clock leads, and is set right
	f.take()
	early := f.dueTick()
	f.must(f.Schedules.Asked(f.ctx, &early.Tick, false))
	f.clock.advance(-3 * time.Hour)
	f.sync(everyHour(nil))
	f.until(1, 0)
	same(f, "the next tick", f.dueTick().PlannedAt, first.PlannedAt.Add(time.Hour))
}

func tickMissed(f *fixture) {
	once := func(id, cron string) schedules.Schedule {
		return everyHour(func(s *schedules.Schedule) { s.ID, s.Cron, s.Once = id, cron, true })
	}
	f.until(1, 30)
	f.sync(everyHour(nil), once("once", "0 * * * *"), once("old", "45 * 15 11 *")) // it is 14 November 2023, 23:30
	f.until(27, 50)
	list := f.dueTicks()
	same(f, "the ticks that run", len(list), 2)
	for _, t := range list {
		f.must(f.Schedules.Asked(f.ctx, &t.Tick, false))
		want := f.clock.Now().Truncate(time.Hour)
		if t.Schedule == "old" {
			continue
		}
		same(f, t.Schedule, t.PlannedAt, want)
	}
	same(f, "the missed one", f.status("hourly").LastResult, schedules.SkippedTick)
	f.until(24*7, 50)
	for _, t := range f.dueTicks() {
		same(f, "after a week runs", t.Schedule, "once")
	}
	same(f, "on time", f.status("hourly").NextAt.After(f.clock.Now()), true)
	f.until(1, 0)
	f.clock.advance(59 * time.Second)
	f.take()
	same(f, "within its minute", f.status("hourly").LastAt, f.clock.Now().Truncate(time.Hour))
}

func tickWorks(f *fixture) {
	f.sync(everyHour(nil))
	f.until(1, 0)
	t := f.dueTick()
	same(f, "skipped while it waits", f.until(1, 0), 1)
	f.fails("by hand", f.Schedules.RunNow(f.ctx, workspace, "hourly"), schedules.ErrWorks)
	f.must(f.Schedules.Asked(f.ctx, &t.Tick, false))
	run := f.askTick(t)
	same(f, "its run", run.ID, t.Message)
	same(f, "skipped while it works", f.until(1, 0), 1)
	status := f.status("hourly")
	same(f, "says so", status.LastError, schedules.ErrWorks.Error())
	same(f, "result", status.LastResult, schedules.SkippedTick)
	f.commit(run, answer("hello"))
	same(f, "skipped after its end", f.until(1, 0), 0)
	same(f, "due", len(f.dueTicks()), 1)
}

func tickResults(f *fixture) {
	f.sync(everyHour(nil))
	tick := func() *runs.Run {
		f.Helper()
		f.until(1, 0)
		return f.askTick(f.dueTick())
	}
	result := func(what string, want schedules.Result, cause string) {
		f.Helper()
		s := f.status("hourly")
		same(f, what, s.LastResult, want)
		same(f, what, s.LastError, cause)
	}
	same(f, "none", f.status("hourly").LastAt.IsZero(), true)
	run := tick()
	result("works", "", "")
	f.commit(run, answer("hello"))
	result("answered", schedules.Posted, "")
	same(f, "run", f.status("hourly").LastRun, run.ID)
	end := func(u runs.Unanswered) {
		f.Helper()
		run := tick()
		_, err := f.Runs.EndAttempt(f.ctx, f.claim(run.Thread), run, u)
		f.must(err)
	}
	end(runs.Unanswered{State: runs.Quiet})
	result("nothing to say", schedules.Quiet, "")
	end(runs.Unanswered{State: runs.Failed, Cause: "no"})
	result("failed", schedules.Failed, "no")
	counts, err := f.Schedules.CountSchedules(f.ctx, []string{workspace})
	f.must(err)
	same(f, "counts", counts, schedules.Counts{Total: 1, Failed: 1})

	run = tick()
	reply := answer("hello")
	reply.Posts = []outbox.Post{{Channel: channel, Text: "hello"}}
	f.commit(run, reply)
	d, err := f.Outbox.NextDelivery(f.ctx, run.Thread)
	f.must(err)
	result("answered, and on its way", "", "")
	_, sending, err := f.Schedules.TickPost(f.ctx, workspace, run.ID)
	f.must(err)
	same(f, "on its way", sending, true)
	_, err = f.Outbox.Sent(f.ctx, d, "C1/9")
	f.must(err)
	post, sending, err := f.Schedules.TickPost(f.ctx, workspace, run.ID)
	f.must(err)
	same(f, "its post", post, "C1/9")
	same(f, "on its way", sending, false)
	result("on the platform", schedules.Posted, "")

	f.until(1, 0)
	t := f.dueTick()
	f.must(f.Schedules.FailTick(f.ctx, &t.Tick, "no such channel"))
	result("without a run", schedules.Failed, "no such channel")
	same(f, "skipped after a failure", f.until(1, 0), 0)
}

func scheduleSync(f *fixture) {
	f.sync(everyHour(nil), everyHour(func(s *schedules.Schedule) { s.ID = "other" }))
	next := f.status("hourly").NextAt
	f.clock.advance(24 * time.Hour)
	f.sync(everyHour(func(s *schedules.Schedule) { s.Prompt = "hello" }), everyHour(func(s *schedules.Schedule) { s.ID = "other" }))
	same(f, "its next tick", f.status("hourly").NextAt, next)
	same(f, "its prompt", f.status("hourly").Prompt, "hello")
	f.sync(everyHour(func(s *schedules.Schedule) { s.Cron = "30 * * * *" }), everyHour(func(s *schedules.Schedule) { s.ID = "other" }))
	same(f, "another time", f.status("hourly").NextAt.After(f.clock.Now()), true)
	f.until(1, 0)
	same(f, "due", len(f.dueTicks()), 1)
	f.clock.advance(time.Minute)
	f.sync(everyHour(nil))
	same(f, "after its removal", len(f.dueTicks()), 0)
	f.clock.advance(10 * time.Minute)
	same(f, "after its removal, later", len(f.dueTicks()), 0)
	_, err := f.Schedules.ScheduleStatus(f.ctx, workspace, "other")
	f.fails("removed", err, storage.ErrNotFound)
	list, more, err := f.Schedules.ListSchedules(f.ctx, schedules.Listed{Workspaces: []string{workspace}, Limit: 10})
	f.must(err)
	same(f, "the rest", []string{list[0].ID, fmt.Sprint(len(list), more)}, []string{"hourly", "1 false"})
}

func schedulePause(f *fixture) {
	f.sync(everyHour(nil))
	f.must(f.Schedules.Pause(f.ctx, workspace, "hourly", true))
	f.until(1, 0)
	same(f, "paused", len(f.dueTicks()), 0)
	f.sync(everyHour(func(s *schedules.Schedule) { s.Once = true }))
	f.until(1, 0)
	same(f, "paused after a reload", len(f.dueTicks()), 0)
	f.must(f.Schedules.RunNow(f.ctx, workspace, "hourly"))
	by := f.dueTick()
	same(f, "by hand, beside a planned minute", by.PlannedAt, f.clock.Now().Add(time.Millisecond))
	f.must(f.Schedules.Asked(f.ctx, &by.Tick, false))
	f.clock.advance(time.Minute)
	f.must(f.Schedules.Pause(f.ctx, workspace, "hourly", false))
	f.take()
	same(f, "the ticks of the pause", len(f.dueTicks()), 0)
	f.until(1, 0)
	begun := f.dueTick()
	f.must(f.Schedules.Pause(f.ctx, workspace, "hourly", true))
	f.clock.advance(time.Minute)
	same(f, "a tick that waited for its place when the pause began", len(f.dueTicks()), 0)
	same(f, "its result", f.status("hourly").LastResult, schedules.SkippedTick)
	f.must(f.Schedules.Asked(f.ctx, &begun.Tick, false))
	same(f, "one that was asked meanwhile", f.status("hourly").LastResult, "")
	f.must(f.Schedules.Pause(f.ctx, workspace, "hourly", false))
	f.until(1, 0)
	same(f, "resumed", len(f.dueTicks()), 1)
	f.sync(everyHour(func(s *schedules.Schedule) { s.Off = true }))
	f.clock.advance(time.Minute)
	same(f, "a tick that waited when its file paused it", len(f.dueTicks()), 0)
	f.until(1, 0)
	f.fails("in the file", f.Schedules.Pause(f.ctx, workspace, "hourly", false), schedules.ErrInFile)
	f.fails("unknown", f.Schedules.Pause(f.ctx, workspace, "unknown", true), storage.ErrNotFound)
	f.fails("unknown", f.Schedules.RunNow(f.ctx, workspace, "unknown"), storage.ErrNotFound)
	same(f, "paused by its file", f.status("hourly").NextAt.IsZero(), true)
}

func scheduleOfThread(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.message(threadKey(2), said("C1/2", "hi"), triggers)
	later := func(n int) schedules.Schedule {
		return schedules.Schedule{Workspace: workspace, ID: fmt.Sprint("s", n), Thread: threadKey(1), Plan: schedules.Plan{
			Timing: schedules.Timing{At: f.clock.Now().Add(time.Duration(n+1) * time.Hour)}, Prompt: "water", Agent: agent,
		}}
	}
	for n := range schedules.MaxOfThread {
		_, err := f.Schedules.AddSchedule(f.ctx, later(n))
		f.must(err)
	}
	again, err := f.Schedules.AddSchedule(f.ctx, later(3))
	f.must(err)
	same(f, "again", again.ID, "s3")
	_, err = f.Schedules.AddSchedule(f.ctx, later(schedules.MaxOfThread))
	f.fails("one more", err, schedules.ErrTooMany)
	unknown := later(0)
	unknown.Thread = threadKey(9)
	_, err = f.Schedules.AddSchedule(f.ctx, unknown)
	f.fails("an unknown thread", err, storage.ErrNotFound)
	f.fails("of another thread", f.Schedules.CancelSchedule(f.ctx, workspace, threadKey(2), "s0"), storage.ErrNotFound)
	opens := func(workspace string, from, to event.ThreadKey) {
		f.must(f.Recorder.OpenUnder(f.ctx, threads.Thread{Key: to, ID: f.threadID(to), Workspace: workspace}, event.Slack, channel, "C1/9", from))
	}
	opens("other", threadKey(1), threadKey(2))
	opens(workspace, threadKey(1), threadKey(2))
	f.fails("one that was moved away", f.Schedules.CancelSchedule(f.ctx, workspace, threadKey(1), "s0"), storage.ErrNotFound)
	opens(workspace, threadKey(2), threadKey(1))
	f.must(f.Schedules.CancelSchedule(f.ctx, workspace, threadKey(1), "s0"))
	list, err := f.Schedules.SchedulesOf(f.ctx, workspace, threadKey(1))
	f.must(err)
	same(f, "of the thread", []any{len(list), list[0].ID, list[0].Place, list[0].Platform}, []any{schedules.MaxOfThread - 1, "s1", channel, event.Slack})
	f.sync() // the file has none
	f.until(2, 0)
	f.clock.advance(20 * time.Minute)
	f.take()
	t := f.dueTick()
	same(f, "what is due", []string{t.Schedule, string(t.Of.Thread)}, []string{"s1", string(threadKey(1))})
	f.must(f.Schedules.Asked(f.ctx, &t.Tick, false))
	f.fails("one that has ticked", f.Schedules.CancelSchedule(f.ctx, workspace, threadKey(1), "s1"), storage.ErrNotFound)
	f.clock.advance(20 * time.Hour) // a downtime
	f.take()
	same(f, "what was missed runs", len(f.dueTicks()), schedules.MaxOfThread-2)
}

func scheduleRetention(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.sync(everyHour(nil))
	_, err := f.Schedules.AddSchedule(f.ctx, schedules.Schedule{Workspace: workspace, ID: "once", Thread: threadKey(1), Plan: schedules.Plan{Timing: schedules.Timing{At: f.clock.Now().Add(time.Minute)}, Prompt: "water"}})
	f.must(err)
	f.until(1, 0)
	for _, t := range f.dueTicks() {
		f.must(f.Schedules.Asked(f.ctx, &t.Tick, false))
	}
	f.clock.advance(100 * 24 * time.Hour)
	_, err = f.Prune(f.ctx, journal.DefaultRetention())
	f.must(err)
	same(f, "its last tick", f.status("hourly").LastAt.IsZero(), true)
	_, err = f.Schedules.ScheduleStatus(f.ctx, workspace, "once")
	same(f, "one that has ticked", errors.Is(err, storage.ErrNotFound), true)
}
