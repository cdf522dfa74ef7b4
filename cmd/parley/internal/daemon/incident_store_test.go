package daemon_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"parley/adapters/slack/slacktest"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// fullEngine is an embedded store whose commits fail while its disk is full.
type fullEngine struct {
	storage.Engine
	full atomic.Bool
}

// Write implements storage.Engine.
func (e *fullEngine) Write(ctx context.Context, o storage.WriteOptions, fn func(storage.Tx) error) error {
	return e.Engine.Write(ctx, o, func(tx storage.Tx) error {
		err := fn(tx)
		if err == nil && e.full.Load() {
			err = storage.ErrFull
		}
		return err
	})
}

// TestIncidentFullDisk: the store has no space. Messages are refused with the reason, and the state of the daemon
// shows it. After there is space, messages that are sent again are taken and answered once.
func TestIncidentFullDisk(t *testing.T) {
	t.Parallel()
	dir := journaltest.Dir(t)
	embedded, err := sqlite.Open(t.Context(), filepath.Join(dir, "data", "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	engine := &fullEngine{Engine: embedded}
	h := open(t, plan{dir: dir, engine: engine})
	h.awaitState("acme", "up")
	before := h.mention("before")
	h.answerNext(replyWith("Noted."))
	h.awaitMetric(sent, 1)
	engine.full.Store(true)
	m := h.newMessage("<@" + slacktest.BotUser + "> are you there?")
	for range 2 {
		if got := h.hook(m.Mention()); got.status != http.StatusServiceUnavailable {
			t.Errorf("a message: %d %s", got.status, got.body)
		}
	}
	got := h.web(http.MethodPost, "ours/messages", ownToken, `{"thread_id":"`+thread+`","client_message_id":"1","content":`+quoted("and there?")+`}`)
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "the disk of the store is full") || got.header.Get("Retry-After") == "" {
		t.Errorf("by the API: %d %s", got.status, got.body)
	}
	if st := h.status(); st.Ready || !st.Degraded() || st.Store.State != "failing" || !strings.Contains(st.Store.Error, "its disk is full") {
		t.Errorf("%+v", st)
	}
	if got := h.get("/readyz"); got.status != http.StatusServiceUnavailable || h.metric("parley_store_up") != 0 {
		t.Errorf("%d %s", got.status, got.body)
	}

	engine.full.Store(false)
	for range 2 { // Slack sends again, and once more because a response was lost
		h.accept(m.Mention())
		h.accept(before.Mention())
	}
	h.postWeb("and there?", `"client_message_id":"1"`)
	for range 2 {
		h.answerNext(replyWith("Here."))
	}
	h.awaitMetric(sent, 2)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 3)
	if st := h.status(); !st.Ready || st.Store.State != "ok" || st.Needs.Dead != 0 || h.metric("parley_store_up") != 1 {
		t.Errorf("%+v", st)
	}
	if posts := h.posts(2); len(posts) != 2 || posts[0].Text != "Noted." || posts[1].Text != "Here." {
		t.Errorf("%+v", posts)
	}
	if n := h.metric(`parley_runs_total{agent="helper",outcome="answered"}`); n != 3 {
		t.Errorf("%v answers", n)
	}
}

// TestIncidentReload: a file has a fault. The reload names it, the last good configuration goes on, and the figure
// shows it until the file is repaired.
func TestIncidentReload(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: "policy: {require_mention: false}"})
	h.awaitState("acme", "up")
	client := h.operate()
	file := filepath.Join(h.dir, "workspaces/acme.yaml")
	good := read(t, file)
	since := h.metric("parley_config_last_reload_timestamp_seconds")
	write(t, file, strings.Replace(good, "require_mention: false", "require_mention: perhaps", 1))
	result, err := client.Reload(h.ctx)
	if err != nil || result.Applied || len(result.Faults) != 1 || result.Faults[0].Key != "policy.require_mention" || !strings.HasSuffix(result.Faults[0].File, "acme.yaml") {
		t.Errorf("%v %+v", err, result)
	}
	if h.metric("parley_config_last_reload_successful") != 0 || h.metric("parley_config_last_reload_timestamp_seconds") != since {
		t.Error("the figures do not show the fault")
	}
	h.accept(h.newMessage("without a mention").Event()) // as the last good configuration says
	h.answerNext(replyWith("Still here."))
	h.awaitMetric(sent, 1)

	write(t, file, strings.Replace(good, "require_mention: false", "require_mention: true", 1))
	if result, err = client.Reload(h.ctx); err != nil || !result.Applied || len(result.Faults) != 0 || len(result.Changed) != 1 {
		t.Errorf("%v %+v", err, result)
	}
	if h.metric("parley_config_last_reload_successful") != 1 {
		t.Error("the figure does not show the repair")
	}
	h.accept(h.newMessage("without a mention").Event())
	h.awaitMetric(envelopesMetric("message", "stored", "no-mention"), 1)
	if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "Still here." {
		t.Errorf("%+v", posts)
	}
	actions, err := client.Audit(h.ctx, nil)
	if err != nil || len(actions.Items) != 2 || actions.Items[0].What != "reload" {
		t.Errorf("%v %+v", err, actions)
	}
}
