package daemon_test

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/sqlite"
)

func TestOneRefusedWorkspaceDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	h := open(t, plan{fake: slacktest.Options{Token: "another"}}).echoes()
	type readiness struct {
		Ready      bool
		Workspaces map[string]struct{ State, Error string }
	}
	for {
		got := h.get("/readyz")
		ready := decode[readiness](t, got.body)
		if got.status != http.StatusOK || !ready.Ready {
			t.Fatalf("%d %s", got.status, got.body)
		}
		if acme := ready.Workspaces["acme"]; acme.State == "refused" {
			if !strings.Contains(acme.Error, "invalid_auth") || !strings.Contains(acme.Error, "bot_token") || ready.Workspaces["ours"].State != "up" {
				t.Errorf("%s", got.body)
			}
			break
		}
		if !h.poll() {
			t.Fatalf("%s\n%s", got.body, h.log)
		}
	}
	if n := strings.Count(h.log.String(), `"level":"ERROR"`); n != 1 {
		t.Errorf("%d errors were logged:\n%s", n, h.log)
	}
	if h.metric(`parley_workspace_up{workspace="acme"}`) != 0 || h.metric(`parley_workspace_up{workspace="ours"}`) != 1 {
		t.Error(h.get("/metrics").body)
	}
	h.postWeb("hello")
	h.awaitReply("Noted.")
	if got := h.get("/healthz"); got.status != http.StatusOK {
		t.Errorf("%d", got.status)
	}
}

// TestIdentityIsStoredAfterAFailure lets the store fail when the platform has told who we are. The
// workspace is up once the store works again, and messages are answered.
func TestIdentityIsStoredAfterAFailure(t *testing.T) {
	t.Parallel()
	engine, err := sqlite.Open(t.Context(), filepath.Join(journaltest.Dir(t), "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &failingEngine{Engine: engine}
	text := "SET self = excluded.self"
	e.text.Store(&text)
	h := open(t, plan{engine: e})
	for e.failures.Load() == 0 {
		if !h.poll() {
			t.Fatalf("the identity was not stored\n%s", h.log)
		}
	}
	e.text.Store(nil)
	h.awaitState("acme", "up")
	h.mention("hello")
	h.answerNext(replyWith("Noted."))
}

// TestMetrics makes every figure change, and checks the names and labels.
func TestMetrics(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.mention("private words of a person")
	h.answerNext(replyWith("private words of the agent"))
	h.awaitMetric(sent, 1)
	h.get("/hooks/slack/unknown")
	h.hook([]byte("no JSON"))
	h.send(slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", "wrong", h.last, []byte(`{}`)))
	figures := h.get("/metrics").body
	for name, labels := range map[string]string{
		"parley_envelopes_total":                          "disposition kind reason workspace",
		"parley_ack_seconds_bucket":                       "le",
		"parley_commit_seconds_bucket":                    "le",
		"parley_runs_total":                               "agent outcome",
		"parley_run_seconds_bucket":                       "agent le",
		"parley_deliveries_total":                         "state workspace",
		"parley_pending_envelopes":                        "",
		"parley_dead_letters":                             "",
		"parley_remembered_bytes":                         "",
		"parley_windows_total":                            "source",
		"parley_rejected_requests_total":                  "reason",
		"parley_last_inbound_timestamp_seconds":           "workspace",
		"parley_workspace_up":                             "workspace",
		"parley_build_info":                               "commit go_version version",
		"parley_store_up":                                 "",
		"parley_store_bytes":                              "",
		"parley_store_writes_total":                       "unit",
		"parley_store_transaction_seconds_total":          "",
		"parley_config_last_reload_successful":            "",
		"parley_config_last_reload_timestamp_seconds":     "",
		"parley_retention_last_success_timestamp_seconds": "",
		"parley_oldest_pending_seconds":                   "queue",
		"parley_delivery_seconds_bucket":                  "workspace le",
		"parley_turn_wait_seconds_bucket":                 "agent le",
		"parley_first_token_seconds_bucket":               "agent le",
		"parley_agent_failing":                            "agent",
		"parley_answer_seconds_bucket":                    "workspace le",
		"parley_platform_requests_total":                  "code method workspace",
		"parley_platform_throttled_seconds_total":         "workspace",
		"parley_connections":                              "state workspace",
		"parley_streams_open":                             "",
		"parley_backup_last_success_timestamp_seconds":    "",
		"parley_store_free_bytes":                         "",
	} {
		line := regexp.MustCompile(`(?m)^` + name + `(?:\{(.*)\})? `).FindStringSubmatch(figures)
		if line == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		var found []string
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(line[1], -1) {
			found = append(found, label[1])
		}
		if got := strings.Join(found, " "); got != labels {
			t.Errorf("%s has the labels %s, want %s", name, got, labels)
		}
	}
	for _, private := range []string{room, mara, "private words", h.last.Format("15:04"), slacktest.BotUser, slacktest.Team} {
		if strings.Contains(figures, private) {
			t.Errorf("the figures contain %q", private)
		}
	}
	if h.metric("parley_dead_letters") != 1 {
		t.Error("parley_dead_letters is not 1")
	}
}

// TestFiguresBeginAtZero: a graph of a healthy daemon has zeros, and no holes.
func TestFiguresBeginAtZero(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	body := h.get("/metrics").body
	for _, line := range []string{`parley_deliveries_open{state="failed",workspace="acme"} 0`, `parley_turns_waiting{agent="helper"} 0`, `parley_runs_in_progress{agent="echo"} 0`,
		`parley_questions_open{agent="helper"} 0`, `parley_backfill_channels_behind{workspace="ours"} 0`} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
}

// TestPageForBrowsers checks the words at the root, and that a page of another site learns nothing.
func TestPageForBrowsers(t *testing.T) {
	t.Parallel()
	h := open(t, plan{metrics: "metrics-7f3a9c51d2e84b60a1c35e97"})
	got := h.get("/")
	if got.status != http.StatusOK || !strings.Contains(got.body, "takes messages") || !strings.Contains(got.body, `href="/openapi.json"`) ||
		!strings.Contains(got.body, `href="/chat"`) || strings.Contains(got.body, ">Console<") || strings.Contains(got.body, "acme") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if policy := got.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") {
		t.Errorf("the policy is %q", policy)
	}
	if got := h.request(http.MethodGet, "/", "metrics-7f3a9c51d2e84b60a1c35e97", "", ""); !strings.Contains(got.body, "<td>acme<td>Slack<td>") || !strings.Contains(got.body, ">Console<") {
		t.Errorf("%d %s", got.status, got.body)
	}
	for request, want := range map[string]int{"GET /nothing": 404, "POST /healthz": 405, "DELETE /api/v1/chat/threads": 405, "GET /api/v2": 404} {
		method, path, _ := strings.Cut(request, " ")
		got := h.request(method, path, "", "", "")
		failed := decode[struct {
			Error struct{ Code, Message string }
		}](t, got.body)
		if got.status != want || failed.Error.Code == "" || failed.Error.Message == "" || (got.header.Get("Allow") != "") != (want == 405) ||
			!strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d %v %s", request, got.status, got.header, got.body)
		}
	}
	for _, path := range []string{"/metrics", "/api/v1/chat/threads"} {
		if got := h.request(http.MethodGet, path, "a-wrong-token-of-24-characters", "", ""); got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
	}
}
