package daemon_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// TestRowsOfARun: with rows, the history and the threads list what a run has finished, in the form of the document.
func TestRowsOfARun(t *testing.T) {
	t.Parallel()
	h := openLater(t, plan{files: map[string]string{"workspaces/ours.yaml": `
id: ours
platform: web
agent: helper
rows: [answer, tool, stage]
web: {tokens: [{id: olivia, token: ` + ownToken + `, name: Olivia, senders: own}]}
turns: {coalesce: 0s}
`}})
	h.started(ownToken, runInput(thread, "run-001", `"hi"`))
	run := <-h.runs
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="awaited"}`, 1)
	const tool = `"d":{"tool":"calendar_create_event","tool_event":`
	for _, update := range []string{`{"t":1,"m":"hm"}`, `{"t":3,"m":"looking",` + tool + `"started"}}`, `{"t":3,"m":"done",` + tool + `"completed"}}`} {
		same(t, h.request(http.MethodPost, "/runs/"+run+"/updates", laterSecret, "application/json", update).status, http.StatusAccepted)
	}
	same(t, h.reply(run, laterSecret, `{"content":"Hello."}`).status, http.StatusAccepted)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	type message struct {
		ID, Role, Content string
		Metadata          map[string]any
	}
	list := func(path string) []message {
		return decode[struct{ Messages []message }](t, h.request(http.MethodGet, path, ownToken, "", "").body).Messages
	}
	for _, path := range []string{"/api/v1/workspaces/ours/threads/" + thread + "/messages", "/api/v1/chat/threads/" + thread + "/messages"} {
		var rows []string
		for _, m := range list(path) {
			if latency, ok := m.Metadata["latency_ms"].(float64); m.Role != "tool" || !ok || latency < 0 {
				continue
			}
			delete(m.Metadata, "latency_ms")
			rows = append(rows, fmt.Sprint(m.Content, " ", m.Metadata))
		}
		same(t, rows, []string{
			"intent map[message_id:intent-run-001 run_id:run-001 stage:intent]",
			"calendar_create_event map[message_id:tool_run-001_1 run_id:run-001 stage:tool_execution tool_name:calendar_create_event]",
			"execution map[message_id:execution-run-001 run_id:run-001 stage:execution]",
		})
	}
	var history []string
	for _, m := range list("/api/v1/agent/history?threadId=" + thread) {
		history = append(history, m.Role+" "+m.ID)
	}
	if want := []string{"tool intent-run-001", "tool tool_run-001_1", "tool execution-run-001"}; len(history) != 5 || !slices.Equal(history[1:4], want) {
		t.Errorf("the history is %q", history)
	}
}
