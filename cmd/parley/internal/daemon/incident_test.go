package daemon_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// letter waits for the only dead letter.
func (h *harness) letter(client *operator.Client) operator.DeadLetter {
	h.t.Helper()
	h.awaitMetric("parley_dead_letters", 1)
	list, err := client.Dead(h.ctx, nil)
	if err != nil || len(list.Items) != 1 {
		h.t.Fatalf("%v %+v", err, list)
	}
	return list.Items[0]
}

// TestIncidentDeadLetter: a payload cannot be read. It is found, shown, tried in vain, tried and resubmitted after
// the program can read it, and answered once.
func TestIncidentDeadLetter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	engine, err := sqlite.Open(t.Context(), filepath.Join(dir, "data", "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, plan{dir: dir, engine: engine})
	h.awaitState("acme", "up")
	m := h.newMessage("<@" + slacktest.BotUser + "> are you there?")
	body := string(m.Mention())
	broken := strings.Replace(body, `"text":`, `"token":"canary-of-slack","text":7,"was":`, 1)
	h.accept([]byte(broken))
	client := h.operate()
	d := h.letter(client)
	if d.Workspace != "acme" || d.State != listing.LetterDead || !strings.Contains(d.Error, "text") || d.ReceivedAt == nil {
		t.Errorf("listed: %+v", d)
	}
	d, err = client.DeadLetter(h.ctx, d.ID, false)
	if err != nil || d.Payload == nil || strings.Contains(*d.Payload, "canary") || !strings.Contains(*d.Payload, "are you there?") {
		t.Errorf("shown: %v %+v", err, d)
	}
	if raw, err := client.DeadLetter(h.ctx, d.ID, true); err != nil || *raw.Payload != broken {
		t.Errorf("raw: %v %+v", err, raw)
	}
	for _, dry := range []bool{true, false} {
		if r, err := client.RetryDead(h.ctx, d.ID, operator.RetryOptions{DryRun: dry, Wait: 10}); err != nil || r.Disposition != "dead" || r.Error != d.Error {
			t.Errorf("in vain, dry %v: %v %+v", dry, err, r)
		}
	}

	// A later program reads a text of this form.
	if err := engine.Write(h.ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(`UPDATE envelopes SET body = $2 WHERE id = $1`, d.ID, []byte(body))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	go h.answerNext(replyWith("Only tried."))
	r, err := client.RetryDead(h.ctx, d.ID, operator.RetryOptions{DryRun: true})
	if err != nil || r.Disposition != "stored" || r.Trigger != "run" || r.Reason != "mention" || len(r.Replies) != 1 || r.Replies[0].Text != "Only tried." ||
		len(r.Assembled) == 0 || !strings.Contains(r.Assembled[len(r.Assembled)-1].Text(), "are you there?") {
		t.Errorf("tried: %v %+v", err, r)
	}
	if d = h.letter(client); d.State != listing.LetterDead || len(h.slack.Posts()) != 0 {
		t.Errorf("after the dry run: %+v, %d posts", d, len(h.slack.Posts()))
	}
	for range 2 { // the second time, nothing happens
		if r, err = client.RetryDead(h.ctx, d.ID, operator.RetryOptions{Wait: 10}); err != nil || r.Disposition != "stored" || r.Trigger != "run" {
			t.Errorf("resubmitted: %v %+v", err, r)
		}
	}
	h.answerNext(replyWith("Yes."))
	h.awaitMetric(sent, 1)
	if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "Yes." || h.metric("parley_dead_letters") != 0 {
		t.Errorf("%+v", posts)
	}
}

// held waits for the only delivery in a state.
func (h *harness) held(client *operator.Client, state string) operator.Delivery {
	h.t.Helper()
	h.awaitMetric(`parley_deliveries_total{state="`+state+`",workspace="acme"}`, 1)
	list, err := client.Deliveries(h.ctx, url.Values{"state": {"unknown,failed"}})
	if err != nil || len(list.Items) != 1 || list.Items[0].State != state {
		h.t.Fatalf("%v %+v", err, list)
	}
	return list.Items[0]
}

// TestIncidentUnknownPost: the outcome of a post is unknown and held. It is found, looked up, and sent or confirmed;
// nothing is doubled.
func TestIncidentUnknownPost(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]bool{"it is there": true, "it is not there": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{turns: "coalesce: 0s, unknown: hold"})
			h.slack.Script("chat.postMessage", slacktest.Fault{Cut: true, Effect: effect})
			h.slack.Script("conversations.replies", slacktest.Fault{Error: "missing_scope"})
			h.mention("are you there?")
			h.answerNext(replyWith("Yes."))
			for h.metric(`parley_deliveries_total{state="unknown",workspace="acme"}`) == 0 && h.poll() {
				h.clock.advance(time.Second)
			}
			client := h.operate()
			d := h.held(client, "unknown")
			if d.Part != 1 || d.Parts != 1 || d.Attempts != 1 || d.Error == "" {
				t.Errorf("%+v", d)
			}
			if shown, err := client.Delivery(h.ctx, d.ID); err != nil || shown.Text == nil || *shown.Text != "Yes." {
				t.Errorf("%v %+v", err, shown)
			}
			got, err := client.ChangeDelivery(h.ctx, d.ID, "resend", nil)
			refused, is := errors.AsType[*operator.Error](err)
			switch post := h.posts(1)[0]; {
			case effect && (!is || refused.Status != 409 || refused.Message != "it is there: "+room+"/"+post.TS):
				t.Errorf("%v", err)
			case !effect && (err != nil || got.State != "sent" || got.PlatformID != room+"/"+post.TS):
				t.Errorf("%v %+v", err, got)
			}
			h.mention("and now?")
			h.answerNext(replyWith("Still."))
			if posts := h.posts(2); len(posts) != 2 || posts[0].Text != "Yes." || posts[1].Text != "Still." {
				t.Errorf("%+v", posts)
			}
			if again, err := client.ChangeDelivery(h.ctx, d.ID, "drop", nil); err == nil {
				t.Errorf("a sent one is dropped: %+v", again)
			}
		})
	}
}

// TestIncidentRefusedPost: a platform refused a post. It is confirmed, dropped or sent by an operator.
func TestIncidentRefusedPost(t *testing.T) {
	t.Parallel()
	for change, body := range map[string]any{"confirm": map[string]string{"post": room + "/1"}, "drop": nil, "resend": nil} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{})
			h.slack.Script("chat.postMessage", slacktest.Fault{Error: "is_archived"})
			h.mention("are you there?")
			h.answerNext(replyWith("Yes."))
			client := h.operate()
			d := h.held(client, "failed")
			got, err := client.ChangeDelivery(h.ctx, d.ID, change, body)
			want := map[string]string{"confirm": "sent", "drop": "dropped", "resend": "sent"}[change]
			if err != nil || got.State != want {
				t.Errorf("%v %+v", err, got)
			}
			if st := h.status(); st.Needs.FailedDeliveries != 0 {
				t.Errorf("%+v", st.Needs)
			}
			actions, err := client.Audit(h.ctx, nil)
			if err != nil || len(actions.Items) != 1 || actions.Items[0].What != "delivery."+change || strings.Contains(string(actions.Items[0].Result), "Yes.") {
				t.Errorf("%v %+v", err, actions)
			}
		})
	}
}
