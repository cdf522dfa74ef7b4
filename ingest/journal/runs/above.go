package runs

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

// tellAbove gives the messages of a workstream's run to the run that launched the workstream, while that one
// goes on. A message of main gets the launch_id as its workstream. Activities get the run's id, because other
// runs may have the same ones. The rows of threads are locked from the child to its parent, and that of the workstream after
// them, as by a stop of the parent. If the messages end the run, their readers need no progress.
func (a *appender) tellAbove(said []stream.Message, ends bool) {
	if !event.IsWorkstream(a.key) {
		return
	}
	above := appender{Txn: a.Txn, now: a.now}
	var launched string
	found := a.Row(append(above.dest(), &above.run, &launched), `SELECT `+appenderColumns+`, run_id, (SELECT id FROM workstreams WHERE thread = $1)
		FROM threads WHERE run_id = (SELECT run FROM workstreams WHERE thread = $1) FOR UPDATE`, string(a.key))
	does := a.progress(said)
	if does != nil {
		workstreams.Told(a.Txn, a.key, a.now)
		a.told = append(a.told, workstreams.Words(a.Txn, a.key))
	}
	if !found {
		return
	}
	given := make([]stream.Message, 0, len(said)+1)
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
	if does != nil && !ends {
		given = append(given, *does)
	}
	above.append(given, false)
	a.told = append(append(a.told, storage.OfRun+above.run), above.told...)
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
	a.tellAbove(said, true)
	e.told = a.told
}

// progress stores the phase of a workstream that its run's messages tell of. If that is a change, it returns the message that tells the
// readers of the run above, with the last words before the answer. Only these readers get the words: the state post on a platform
// shows more people what a workstream does.
func (a *appender) progress(said []stream.Message) (m *stream.Message) {
	var phase workstreams.Phase
	var tool, words string
	for _, m := range slices.Backward(said) {
		name, happened := m.Tool()
		var tells workstreams.Phase
		switch {
		case !m.OfMain():
			continue
		case happened == "started" || happened == "progress":
			tells = workstreams.ExecutingTool
		case happened != "" || m.Type == stream.StreamingChunk || m.Type == stream.Answer:
			tells, name = workstreams.Synthesizing, ""
		case m.Type == stream.Thought || m.Type == stream.Plan:
			tells = workstreams.Planning
		}
		if phase == "" && tells != "" {
			phase, tool = tells, event.Beginning(event.Text(name), workstreams.MaxTool)
		}
		if words == "" && (m.Type == stream.Thought || m.Type == stream.Plan || m.Type == stream.Update) {
			words = event.Line(event.Text(m.Text), workstreams.MaxMessage)
		}
	}
	if phase == "" {
		return nil
	}
	w := workstreams.Works(a.Txn, a.key, phase, tool)
	if w == nil {
		return nil
	}
	details, _ := json.Marshal(map[string]any{ // texts and numbers
		"workstream_name": cmp.Or(w.Name, w.Agent), "state": string(w.State), "phase": string(w.Phase), "tool_name": w.Tool, "iteration": w.Iteration, "message": cmp.Or(words, w.Message),
		"deadline_elapsed": w.Elapsed(storage.Instant(a.now)),
	})
	return &stream.Message{Type: stream.Update, Workstream: w.ID, Details: details}
}
