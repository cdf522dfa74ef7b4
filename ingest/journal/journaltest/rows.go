package journaltest

import (
	"fmt"
	"time"

	"parley/assembly/stream"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
)

func rowPromises() []promise {
	return []promise{
		{"what a run has finished are rows before its reply, and no agent gets them", rowsStored},
		{"a run without an answer has its rows before its notice", rowsOfFailed},
	}
}

// allRows are all kinds of rows.
var allRows = []string{runs.RowAnswer, runs.RowTool, runs.RowStage}

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
	run := f.asked()
	f.calls(run)
	reply := answer("Found.")
	reply.Rows = allRows
	f.commit(run, reply)
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
	reply = answer("Again.")
	reply.Rows = []string{runs.RowTool}
	reply.Stale = "rerun" // rows make no reply stale
	f.commit(next, reply)
	same(f, "the thread", f.lines(threadKey(1))[6:], []string{"7 hi", "8 search", "9 search", "10 Again."})
	f.commit(f.asked(), answer("No rows."))
	same(f, "the end", f.lines(threadKey(1))[10:], []string{"11 hi", "12 No rows."})
}

func rowsOfFailed(f *fixture) {
	run := f.asked()
	f.calls(run)
	f.leaves(run, runs.Unanswered{At: f.clock.Now(), Failed: true, Rows: allRows})
	same(f, "after an attempt", f.lines(threadKey(1)), []string{"1 hi"})
	run = f.begin(threadKey(1))
	f.leaves(run, runs.Unanswered{State: runs.Failed, Cause: "broken", Rows: []string{runs.RowTool}, Notice: outbox.Notice{Text: "Sorry.", Metadata: []byte("{}")}})
	same(f, "after the last one", f.lines(threadKey(1)), []string{"1 hi", "2 search", "3 search", "4 Sorry."})
	same(f, "turns", f.turnsOf(f.asked(), 50), []string{"|hi|", "|hi|"})
}
