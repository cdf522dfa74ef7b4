package runs

import (
	"slices"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

// tellAbove gives the messages of a workstream's run to the run that launched the workstream, while that one
// goes on. A message of main gets the launch_id as its workstream. Activities get the run's id, because other
// runs may have the same ones. The rows of threads are locked from the child to its parent, and that of the workstream after
// them, as by a stop of the parent.
func (a *appender) tellAbove(said []stream.Message) {
	if !event.IsWorkstream(a.key) {
		return
	}
	above := appender{Txn: a.Txn, now: a.now}
	var launched string
	found := a.Row(append(above.dest(), &above.run, &launched), `SELECT `+appenderColumns+`, run_id, (SELECT id FROM workstreams WHERE thread = $1)
		FROM threads WHERE run_id = (SELECT run FROM workstreams WHERE thread = $1) FOR UPDATE`, string(a.key))
	if a.progress(said) {
		workstreams.Told(a.Txn, a.key, a.now)
	}
	if !found {
		return
	}
	given := make([]stream.Message, 0, len(said))
	for _, m := range said {
		switch {
		case m.Ends():
			continue // the end of the workstream, and not that of its run, is its last message
		case m.OfMain():
			m.Workstream = launched
		}
		if m.ActivityID != "" && !strings.HasPrefix(m.ActivityID, a.run) {
			m.ActivityID = a.run + "/" + m.ActivityID
		}
		given = append(given, m)
	}
	above.append(given, false)
	a.told = append(append(a.told, above.run), above.told...)
}

// tellAbove gives the run that launched a workstream the messages at the end of a run of the workstream. The
// reply is one of them.
func (e *endRunTx) tellAbove(events []stream.Message, state State, reply string) {
	said := slices.DeleteFunc(slices.Clone(events), func(m stream.Message) bool { return m.OfMain() && m.Type == stream.Idle })
	answers := func(m stream.Message) bool {
		return m.OfMain() && (m.Type == stream.Answer || m.Type == stream.RequestInput)
	}
	if state == Done && reply != "" && !slices.ContainsFunc(said, answers) {
		said = append(said, stream.Message{Type: stream.Answer, Text: reply, ActivityID: AnswerActivity(e.run.ID)})
	}
	a := appender{Txn: e.Txn, run: e.run.ID, now: e.now, key: e.run.ThreadKey}
	a.tellAbove(said)
	e.told = a.told
}

// progress stores the phase of a workstream that its run's messages tell of, and reports whether it has changed.
func (a *appender) progress(said []stream.Message) bool {
	for _, m := range slices.Backward(said) {
		tool, happened := m.Tool()
		var phase workstreams.Phase
		switch {
		case !m.OfMain():
		case happened == "started" || happened == "progress":
			phase = workstreams.ExecutingTool
		case happened != "" || m.Type == stream.StreamingChunk || m.Type == stream.Answer:
			phase, tool = workstreams.Synthesizing, ""
		case m.Type == stream.Thought || m.Type == stream.Plan:
			phase = workstreams.Planning
		}
		if phase != "" {
			return workstreams.Works(a.Txn, a.key, phase, event.Beginning(event.Text(tool), workstreams.MaxTool))
		}
	}
	return false
}
