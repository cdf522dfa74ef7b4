package daemon_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestALaterReply checks an agent behind a webhook that takes a run and answers it after a
// restart of the daemon.
func TestALaterReply(t *testing.T) {
	t.Parallel()
	const secret = "webhook-secret-of-the-test"
	runs := make(chan string, 16)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			RunID string `json:"run_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		runs <- body.RunID
	}))
	t.Cleanup(hook.Close)
	h := open(t, plan{files: map[string]string{"parley.yaml": `
listen: 127.0.0.1:0
shutdown: 3s
agents:
  - {id: helper, kind: webhook, url: "` + hook.URL + `", secret: ` + secret + `}
  - {id: echo, kind: echo}
`}})
	h.postWeb("hi")
	run := <-runs
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="awaited"}`, 1)
	h.restart()

	reply := func(run, bearer, body string) answer {
		t.Helper()
		request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url+"/api/v1/runs/"+run+"/reply", strings.NewReader(body))
		if err == nil {
			request.Header.Set("Authorization", "Bearer "+bearer)
		}
		return h.send(request, err)
	}
	const hello = `{"content":"Hello."}`
	same(t, reply(run, "guessed", hello).status, http.StatusUnauthorized)
	same(t, reply("0190a0e4-0000-7000-8000-000000000000", secret, hello).status, http.StatusNotFound)
	same(t, reply(run, secret, `{"text":"Hello."}`).status, http.StatusBadRequest)
	same(t, reply(run, secret, hello).status, http.StatusAccepted)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	same(t, reply(run, secret, hello).status, http.StatusConflict)

	got := h.web(http.MethodGet, "ours/threads/"+thread+"/messages", ownToken, "").body
	if strings.Count(got, `"content":"Hello."`) != 1 || len(runs) != 0 {
		t.Errorf("%d further requests; the thread is %s", len(runs), got)
	}
}
