package journaltest

import (
	"fmt"
	"time"

	"parley/ingest/journal"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
)

func rowPromises() []promise {
	return []promise{
		{"what a run has finished are rows before its reply, and no agent gets them", rowsStored},
		{"a run without an answer has its rows before its notice", rowsOfFailed},
		{"the row of a call has its card, its error and the time of its end", rowsOfCalls},
		{"a stopped run has its rows before its notice", rowsOfStopped},
	}
}

// leavesRows gives the runs of the workspace rows of some kinds.
func (f *fixture) leavesRows(kinds ...string) {
	f.Journal = journal.New(f.engine, journal.Options{Node: "first", Now: f.clock.Now, Rows: func(string) []string { return kinds }})
}

// calls stores a thought and two calls of a tool, each of a second.
func (f *fixture) calls(run *runs.Run) {
	f.Helper()
	f.append(run, thought("hm"))
	f.clock.advance(time.Second)
	for range 2 {
		for _, happened := range []string{"started", "completed"} {
			f.append(run, stream.Message{Type: stream.Update, Text: "search", Details: fmt.Appendf(nil, `{"tool":"search","tool_event":%q}`, happened)})
			f.clock.advance(time.Second)
		}
	}
}

// listed returns the messages of a thread as "seq role content metadata".
func (f *fixture) listed() []string {
	f.Helper()
	return each(f.list(threadKey(1)), func(m messages.Listed) string {
		if m.Author != messages.ByTool {
			return fmt.Sprintf("%d %s %s", m.Seq, m.Role(), m.Content)
		}
		return fmt.Sprintf("%d %s %s %s", m.Seq, m.Role(), m.Content, m.Metadata)
	})
}

func rowsStored(f *fixture) {
	f.leavesRows(runs.RowAnswer, runs.RowTool, runs.RowStage)
	run := f.asked()
	f.calls(run)
	f.commit(run, answer("Found."))
	same(f, "rows", f.listed(), []string{
		"1 user hi",
		fmt.Sprintf(`2 tool intent {"run_id":%q,"stage":"intent","latency_ms":1000,"message_id":"intent-%[1]s"}`, run.ID),
		fmt.Sprintf(`3 tool search {"run_id":%q,"stage":"tool_execution","latency_ms":1000,"message_id":"tool_%[1]s_1","tool_name":"search"}`, run.ID),
		fmt.Sprintf(`4 tool search {"run_id":%q,"stage":"tool_execution","latency_ms":1000,"message_id":"tool_%[1]s_2","tool_name":"search"}`, run.ID),
		fmt.Sprintf(`5 tool execution {"run_id":%q,"stage":"execution","latency_ms":4000,"message_id":"execution-%[1]s"}`, run.ID),
		"6 assistant Found.",
	})
	next := f.asked()
	same(f, "turns", f.turnsOf(next, 50), []string{"|hi|Found.", "|hi|"})
	f.calls(next)
	f.leavesRows(runs.RowTool)
	reply := answer("Again.")
	reply.Stale = "rerun" // rows make no reply stale
	f.commit(next, reply)
	same(f, "the thread", f.lines(threadKey(1))[6:], []string{"7 hi", "8 search", "9 search", "10 Again."})
	f.leavesRows(runs.RowAnswer)
	f.commit(f.asked(), answer("No rows."))
	same(f, "the end", f.lines(threadKey(1))[10:], []string{"11 hi", "12 No rows."})
}

func rowsOfFailed(f *fixture) {
	f.leavesRows(runs.RowTool)
	run := f.asked()
	f.calls(run)
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true})
	same(f, "after an attempt", f.lines(threadKey(1)), []string{"1 hi"})
	run = f.begin(threadKey(1))
	f.leaves(run, runs.Unanswered{State: runs.Failed, Cause: "broken", Notice: outbox.Notice{Text: "Sorry.", Metadata: []byte("{}")}})
	same(f, "after the last one", f.lines(threadKey(1)), []string{"1 hi", "2 search", "3 search", "4 Sorry."})
	same(f, "turns", f.turnsOf(f.asked(), 50), []string{"|hi|", "|hi|"})
}

func rowsOfCalls(f *fixture) {
	f.leavesRows(runs.RowTool)
	run, begun := f.asked(), f.clock.Now()
	for _, details := range []string{
		`{"tool":"search","tool_event":"started","tool_use_id":"a"}`, `{"tool":"search","tool_event":"started","tool_use_id":"b"}`,
		`{"tool":"search","tool_event":"completed","tool_use_id":"b","uiSchema":{"version":"2.0"}}`, `{"tool":"search","tool_event":"failed","tool_use_id":"a","error":"no such book"}`,
	} {
		f.append(run, stream.Message{Type: stream.Update, Details: []byte(details)})
		f.clock.advance(time.Second)
	}
	f.commit(run, answer("Found."))
	same(f, "rows", f.listed(), []string{
		"1 user hi",
		fmt.Sprintf(`2 tool search {"run_id":%q,"stage":"tool_execution","latency_ms":1000,"message_id":"tool_%[1]s_1","tool_name":"search","uiSchema":{"version":"2.0"}}`, run.ID),
		fmt.Sprintf(`3 tool search {"run_id":%q,"stage":"tool_execution","latency_ms":3000,"message_id":"tool_%[1]s_2","tool_name":"search","status":"failed","error":"no such book"}`, run.ID),
		"4 assistant Found.",
	})
	at := each(f.list(threadKey(1)), func(m messages.Listed) time.Duration { return m.CreatedAt.Sub(begun) })
	same(f, "times", at[1:3], []time.Duration{2 * time.Second, 3 * time.Second})
}

func rowsOfStopped(f *fixture) {
	f.leavesRows(runs.RowTool)
	run := f.asked()
	f.calls(run)
	_, err := f.Runs.StopRun(f.ctx, run.ID, outbox.Notice{Text: "Stopped.", Metadata: []byte(`{}`)})
	f.must(err)
	same(f, "by an operator", f.lines(threadKey(1)), []string{"1 hi", "2 search", "3 search", "4 Stopped."})
	f.calls(f.asked())
	f.message(threadKey(1), said("C1/stop", "/stop"), commands)
	f.commit(f.asked(), answer("Again."))
	same(f, "by a command", f.lines(threadKey(1))[4:], []string{"5 hi", "6 /stop", "7 search", "8 search", "9 Stopped.", "10 hi", "11 Again."})
}
