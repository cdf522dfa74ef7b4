package daemon_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestCards: the hints of an answer and of a tool's result become cards in the history and in the messages of
// the run. A faulty card is refused with its path.
func TestCards(t *testing.T) {
	t.Parallel()
	h := openLater(t)
	h.started(ownToken, runInput(thread, "run-001", `"hi"`))
	run := <-h.runs
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="awaited"}`, 1)
	update := func(body string) answer {
		return h.request(http.MethodPost, "/runs/"+run+"/updates", laterSecret, "application/json", body)
	}
	const hints = `"ui_hints":{"status":"success","locale":"zh-CN","title":"日程已创建","body":"您的会议日程创建成功"}`
	const card = `"uiSchema":{"version":"2.0","locale":"zh-CN","status":"success","theme":"default","root":{"type":"stack","appearance":"card","children":[` +
		`{"type":"text","content":"日程已创建","role":"title"},{"type":"badge","label":"SUCCESS","status":"success"},{"type":"text","content":"您的会议日程创建成功","role":"body"}]}}`
	for want, refused := range map[string]answer{
		`"field":"messages[0].d.uiSchema.root.children[0].status"`: update(`{"t":3,"d":{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","root":{"type":"stack","children":[{"type":"badge","label":"x","status":"fine"}]}}}}`),
		`"field":"ui_hints.badges[0].label"`:                       h.reply(run, laterSecret, `{"content":"x","ui_hints":{"badges":[{"status":"success"}]}}`),
	} {
		if refused.status != http.StatusBadRequest || !strings.Contains(refused.body, want) {
			t.Errorf("%d %s, want a fault of %s", refused.status, refused.body, want)
		}
	}
	same(t, update(`{"t":3,"m":"calendar","d":{"tool":"calendar",`+hints+`}}`).status, http.StatusAccepted)
	same(t, h.reply(run, laterSecret, `{"content":"好的,我来帮您创建日程。",`+hints+`}`).status, http.StatusAccepted)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	for path, cards := range map[string]int{
		"/runs/" + thread + "/run-001/updates":         2,
		"/api/v1/agent/history?threadId=" + thread:     1,
		"/api/v1/chat/threads/" + thread + "/messages": 1,
	} {
		if got := h.request(http.MethodGet, path, ownToken, "", ""); strings.Count(got.body, card) != cards || strings.Contains(got.body, "ui_hints") {
			t.Errorf("%s: %d %s, want %d cards", path, got.status, got.body, cards)
		}
	}
}
