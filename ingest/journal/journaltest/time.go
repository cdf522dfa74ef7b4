package journaltest

import (
	"math"
	"time"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
)

func timePromises() []promise {
	return []promise{
		{"turns are chosen by time, and their messages are in order of time", turnsByTime},
		{"a transcript shows turns and blocks by time", transcriptByTime},
		{"a late message makes no reply stale if it was recorded before the run", lateIsNotStale},
		{"a message's time is never after its arrival", timeOfArrival},
		{"a turn that lacks earlier messages reports the gap, at its run and later", turnWithGap},
	}
}

// late records a message sent some time ago.
func (f *fixture) late(id, content string, ago time.Duration, decide policy) {
	f.Helper()
	m := said(id, content)
	m.SentAt = f.clock.Now().Add(-ago)
	f.message(threadKey(1), m, decide)
}

func turnsByTime(f *fixture) {
	f.late("C1/3", "c", time.Second, triggers)
	f.late("C1/1", "a", time.Minute, triggers)
	f.late("C1/2", "b", 30*time.Second, triggers)
	run := f.mayBegin(threadKey(1), true)
	same(f, "asked first", contents(run.Messages), []string{"a"})
	f.commit(run, answer("A"))
	run = f.begin(threadKey(1))
	same(f, "asked next", contents(run.Messages), []string{"b", "c"})
	resumed := f.successor("second").begin(threadKey(1))
	same(f, "block of the resumed run", [2]int64{resumed.ContextAfter, resumed.BaseSeq}, [2]int64{run.ContextAfter, run.BaseSeq})
}

func transcriptByTime(f *fixture) {
	f.late("C1/4", "p", 20*time.Second, passive)
	f.late("C1/2", "b", 30*time.Second, triggers)
	f.commit(f.begin(threadKey(1)), answer("B"))
	f.late("C1/1", "a", time.Minute, triggers)
	f.commit(f.begin(threadKey(1)), answer("A"))
	f.late("C1/3", "o", 40*time.Second, passive)
	f.late("C1/5", "q", 50*time.Second, passive)
	f.late("C1/6", "c", time.Second, triggers)
	turns, err := f.Runs.Transcript(f.ctx, f.begin(threadKey(1)), runs.Window{Turns: 50, Bytes: 1000, Context: 20})
	f.must(err)
	shown := each(turns, func(t runs.Turn) []string {
		list := each(t.Context, func(m messages.Message) string { return m.Content })
		if t.Root != nil {
			list = append(list, "root "+t.Root.Content)
		}
		list = append(list, contents(t.Messages)...)
		if t.Reply != nil {
			list = append(list, t.Reply.Content)
		}
		return list
	})
	same(f, "turns", shown, [][]string{{"a", "A"}, {"root p", "b", "B"}, {"o", "q", "c"}})
}

func lateIsNotStale(f *fixture) {
	f.message(threadKey(1), said("C1/2", "b"), triggers)
	f.late("C1/1", "a", time.Minute, passive)
	reply := answer("B")
	reply.Stale = "drop"
	same(f, "result", f.commit(f.begin(threadKey(1)), reply).State, runs.Done)
}

func timeOfArrival(f *fixture) {
	m := said("C1/1", "from the future")
	m.SentAt = f.clock.Now().Add(time.Hour)
	f.message(threadKey(1), m, passive)
	same(f, "time", f.list(threadKey(1))[0].SentAt, f.clock.Now())
}

func turnWithGap(f *fixture) {
	f.message(threadKey(1), said("C1/1", "a"), triggers)
	begin := func(gap bool) *runs.Run {
		run, err := f.Runs.BeginRun(f.ctx, f.claim(f.thread(threadKey(1))), agent, gap, func(*runs.Run) bool { return false }, math.MaxInt64)
		f.must(err)
		return run
	}
	same(f, "gap", begin(true).Gap, true)
	run := f.successor("second").begin(threadKey(1))
	same(f, "gap of the resumed run", run.Gap, true)
	delete(f.claims, run.Thread)
	f.commit(run, answer("A"))
	f.message(threadKey(1), said("C1/2", "b"), triggers)
	turns, err := f.Runs.Transcript(f.ctx, begin(false), runs.Window{Turns: 50, Bytes: 1000, Context: 20})
	f.must(err)
	same(f, "gaps", each(turns, func(t runs.Turn) bool { return t.Gap }), []bool{true, false})
}
