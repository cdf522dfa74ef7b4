package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDeepDetailsAreReadable checks that every page of a run stays readable, however deep the values are that
// its agent sends: one of AG-UI in each event that may carry them, and one that answers later.
func TestDeepDetailsAreReadable(t *testing.T) {
	t.Parallel()
	deep := nested(9_990)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input struct{ RunID string }
		if !takesInput(t, w, r, &input) {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"type":"RUN_STARTED","threadId":"t","runId":"THE-RUN"}`, `{"type":"CUSTOM","name":"x","value":` + deep + `}`,
			`{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"map","content":{"k":` + deep + `}}`,
			`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c","content":` + quoted(deep) + `}`,
			`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"Done."}`,
			`{"type":"RUN_FINISHED","threadId":"t","runId":"THE-RUN","result":` + deep + `,"usage":{"k":` + deep + `}}`,
		} {
			fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(event, "THE-RUN", input.RunID))
		}
	}))
	t.Cleanup(endpoint.Close)
	h := open(t, plan{files: map[string]string{"parley.yaml": `
listen: 127.0.0.1:0
shutdown: 30s
agents:
  - {id: helper, kind: agui, url: "` + endpoint.URL + `"}
  - {id: echo, kind: echo}
`}})
	h.started(ownToken, runInput(thread, "run-001", `"hi"`))
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	h.readable("run-001", `"value":`, "Done.")

	l := openLater(t)
	l.started(ownToken, runInput(thread, "run-002", `"hi"`))
	known := <-l.runs
	l.awaitMetric(`parley_runs_total{agent="helper",outcome="awaited"}`, 1)
	post := func(update string) answer {
		return l.request(http.MethodPost, "/runs/"+known+"/updates", laterSecret, "application/json", update)
	}
	got := post(`{"t":3,"m":"halfway","d":` + nested(101) + `}`)
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, `"messages[0].d"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	same(t, post(`{"t":3,"m":"halfway","d":`+nested(100)+`}`).status, http.StatusAccepted)
	same(t, l.reply(known, laterSecret, `{"content":"Done.","k":`+deep+`}`).status, http.StatusAccepted)
	l.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	l.readable("run-002", "halfway", "Done.", `"k":`)
}

// readable checks that every page of a run is JSON that readers with a bound of 100 and some levels of a page take, and has the
// words.
func (h *harness) readable(run string, words ...string) {
	h.t.Helper()
	for _, page := range []string{"/api/v1/runs/" + run + "/events", "/runs/" + thread + "/" + run + "/updates"} {
		got := h.request(http.MethodGet, page, ownToken, "", "")
		if got.status != http.StatusOK || !json.Valid([]byte(got.body)) || strings.Contains(got.body, strings.Repeat(`[`, 101)+`"`) {
			h.t.Errorf("%s: %d %.300s", page, got.status, got.body)
		}
		for _, word := range words {
			if !strings.Contains(got.body, word) {
				h.t.Errorf("%s lacks %s", page, word)
			}
		}
	}
}
