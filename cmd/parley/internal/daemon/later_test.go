package daemon_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
)

const laterSecret = "webhook-secret-of-the-test"

// later is a daemon whose agent helper takes each run and answers it later.
type later struct {
	*harness
	plan plan
	runs chan string // that the agent has taken
}

func openLater(t *testing.T, plans ...plan) *later {
	t.Helper()
	l := &later{runs: make(chan string, 16)}
	if len(plans) > 0 {
		l.plan = plans[0]
	}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			RunID string `json:"run_id"`
		}
		if !takesInput(t, w, r, &body) {
			return
		}
		w.WriteHeader(http.StatusAccepted)
		l.runs <- body.RunID
	}))
	t.Cleanup(hook.Close)
	files := map[string]string{"parley.yaml": `
listen: 127.0.0.1:0
shutdown: 30s
agents:
  - {id: helper, kind: webhook, url: "` + hook.URL + `", secret: ` + laterSecret + `}
  - {id: echo, kind: echo}
`}
	for name, content := range l.plan.files {
		files[name] = content
	}
	l.plan.files = files
	l.harness = open(t, l.plan)
	return l
}

// take posts a message, and returns its run when the agent has taken it.
func (l *later) take() string {
	l.t.Helper()
	l.postWeb("hi")
	run := <-l.runs
	l.awaitMetric(`parley_runs_total{agent="helper",outcome="awaited"}`, 1)
	return run
}

// reply answers a run.
func (l *later) reply(run, bearer, body string) answer {
	l.t.Helper()
	request, err := http.NewRequestWithContext(l.ctx, http.MethodPost, l.url+"/api/v1/runs/"+run+"/reply", strings.NewReader(body))
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	return l.send(request, err)
}

// TestALaterReply checks an agent behind a webhook that takes a run and answers it after a
// restart of the daemon.
func TestALaterReply(t *testing.T) {
	t.Parallel()
	h := openLater(t)
	run := h.take()
	h.restart()

	const hello = `{"content":"Hello.","mood":{"n":null},"files":[{"name":"hi.txt","mime_type":"text/plain","data":"aGk="}]}`
	same(t, h.reply(run, "guessed", hello).status, http.StatusUnauthorized)
	same(t, h.reply("0190a0e4-0000-7000-8000-000000000000", laterSecret, hello).status, http.StatusNotFound)
	same(t, h.reply(run, laterSecret, `{"text":"Hello."}`).status, http.StatusBadRequest)
	same(t, h.reply(run, laterSecret, hello).status, http.StatusAccepted)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	same(t, h.reply(run, laterSecret, hello).status, http.StatusConflict)

	got := h.web(http.MethodGet, "ours/threads/"+thread+"/messages", ownToken, "").body
	if strings.Count(got, `"content":"Hello."`) != 1 || !strings.Contains(got, `"mood":{"n":null}`) || !strings.Contains(got, `[{"name":"hi.txt","mime_type":"text/plain","size":2,`) || len(h.runs) != 0 {
		t.Errorf("%d further requests; the thread is %s", len(h.runs), got)
	}
}

// TestALaterReplyToANamedRun checks that an agent behind a webhook gets an id of ours for a run that its
// client named, and that its messages and its answer come to that run by it.
func TestALaterReplyToANamedRun(t *testing.T) {
	t.Parallel()
	h := openLater(t)
	h.started(ownToken, runInput(thread, "run-001", `"hi"`))
	known := <-h.runs
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="awaited"}`, 1)
	if uuid.Validate(known) != nil {
		t.Errorf("the agent knows the run by %q", known)
	}
	update := h.request(http.MethodPost, "/runs/"+known+"/updates", laterSecret, "application/json", `{"t":3,"m":"halfway"}`)
	same(t, update.status, http.StatusAccepted)
	same(t, h.reply(known, laterSecret, `{"content":"Hello."}`).status, http.StatusAccepted)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	got := h.request(http.MethodGet, "/runs/"+thread+"/run-001/updates", ownToken, "", "").body
	if !strings.Contains(got, "halfway") || !strings.Contains(got, "Hello.") {
		t.Errorf("the run is %s", got)
	}
}
