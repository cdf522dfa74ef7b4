package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestAPushNotification has an agent of A2A whose task works for longer than an attempt. Its report at the address that the message named
// makes Parley ask for the task. Only the token of the run admits it, and nothing that the report says counts.
func TestAPushNotification(t *testing.T) {
	t.Parallel()
	type push struct{ URL, Token string }
	pushes := make(chan push, 1)
	var done atomic.Bool
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"name":"Slow","protocolVersion":"0.3.0","url":"/rpc","capabilities":{"pushNotifications":true}}`)
			return
		}
		var asked struct {
			Method string
			Params struct {
				Configuration struct {
					PushNotificationConfig push
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		if asked.Method == "message/send" {
			pushes <- asked.Params.Configuration.PushNotificationConfig
		}
		state := map[bool]string{false: "working", true: "completed"}[done.Load()]
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"x","result":{"kind":"task","id":"t1","contextId":"c1","status":{"state":%q,"message":{"messageId":"m","parts":[{"kind":"text","text":"Slow but sure."}]}}}}`, state)
	}))
	t.Cleanup(service.Close)
	h := open(t, plan{files: map[string]string{"parley.yaml": `
listen: 127.0.0.1:0
public_url: https://parley.test/base
agents:
  - {id: helper, kind: a2a, card: "` + service.URL + `/card", timeout: 2s}
  - {id: echo, kind: echo}
`}})
	h.postWeb("hi")
	given := <-pushes
	path, ok := strings.CutPrefix(given.URL, "https://parley.test/base")
	if !ok || !strings.HasPrefix(given.Token, "parley-push-") {
		t.Fatalf("%+v", given)
	}
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="awaited"}`, 1)
	report := func(path, token string) int {
		request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url+path, strings.NewReader(`{"id":"t1","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"Forged."}]}]}`))
		if err == nil {
			request.Header.Set("X-A2A-Notification-Token", token)
		}
		return h.send(request, err).status
	}
	const other = "/api/v1/runs/0190a0e4-0000-7000-8000-000000000000/push"
	same(t, report(path, "guessed"), http.StatusUnauthorized)
	same(t, report(path, ""), http.StatusUnauthorized)
	same(t, report(other, given.Token), http.StatusUnauthorized)
	done.Store(true)
	same(t, report(path, given.Token), http.StatusAccepted)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	same(t, report(path, given.Token), http.StatusAccepted) // of a run that has ended: nothing follows
	got := h.web(http.MethodGet, "ours/threads/"+thread+"/messages", ownToken, "").body
	if strings.Count(got, `"content":"Slow but sure."`) != 1 || strings.Contains(got, "Forged") {
		t.Errorf("the thread is %s", got)
	}
}
