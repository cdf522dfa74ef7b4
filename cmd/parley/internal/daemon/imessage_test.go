package daemon_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters/bluebubbles/bluebubblestest"
)

const (
	nora        = "+15555550142"
	noraChat    = "iMessage;-;" + nora
	selfChat    = "iMessage;-;" + bluebubblestest.Address
	hookCanary  = "canary-hook-secret-4b8e1d"
	macPassword = "canary mac/pass+%"
)

// imessage is a harness with a fake BlueBubbles server.
type imessage struct {
	*harness
	mac            *bluebubblestest.Server
	queries, sends chan struct{} // a value for each call
}

// openIMessage starts a daemon with the workspace home, whose echo agent answers at once.
// Programs may post in the workspaces that posts names.
func openIMessage(t *testing.T, options bluebubblestest.Options, more string, posts ...string) *imessage {
	t.Helper()
	m := &imessage{queries: make(chan struct{}, 10_000), sends: make(chan struct{}, 10_000)}
	options.Password = macPassword
	options.OnCall = func(c bluebubblestest.Call) {
		switch c.Route {
		case "POST message/query":
			m.queries <- struct{}{}
		case "POST message/text":
			m.sends <- struct{}{}
		}
	}
	var err error
	if m.mac, err = bluebubblestest.Start(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.mac.Close() })
	m.mac.AddContact(bluebubblestest.Contact{Address: nora, Name: "Nora Lindqvist"})
	m.harness = open(t, withPosters(plan{files: map[string]string{"workspaces/home.yaml": `
id: home
platform: bluebubbles
agent: echo
bluebubbles: {url: "` + m.mac.URL() + `", password: "` + macPassword + `", webhook_secret: ` + hookCanary + `, post_rate: 0, timeout: 3s, poll: 1h, wake: [parley]}
turns: {coalesce: 0s}
` + more}}, strings.Join(posts, ", ")))
	for len(m.mac.Registered()) == 0 || !strings.Contains(m.get("/readyz").body, `"home":{"state":"up"`) {
		if !m.poll() {
			t.Fatalf("the workspace is not up\n%s", m.log)
		}
	}
	return m
}

func (m *imessage) says(chat, from, text string) {
	m.mac.Say(bluebubblestest.Message{Chat: chat, From: from, Text: text})
}

func (m *imessage) sent(n int) []bluebubblestest.Message {
	m.t.Helper()
	sent, err := m.mac.Await(m.ctx, n)
	if err != nil {
		m.t.Fatalf("%v\n%s%s", err, m.state(), m.log)
	}
	return sent
}

// heard waits for a call.
func (m *imessage) heard(calls <-chan struct{}) {
	m.t.Helper()
	select {
	case <-calls:
	case <-m.ctx.Done():
		m.t.Fatalf("the call does not come\n%s%s", m.state(), m.log)
	}
}

// results is the name of a figure about the workspace's messages.
func results(disposition, reason string) string {
	return fmt.Sprintf(`parley_envelopes_total{disposition=%q,kind="message",reason=%q,workspace="home"}`, disposition, reason)
}

// TestIMessage checks that a message is answered once, and that our own post comes back
// without effect, also in the chat with oneself.
func TestIMessage(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{PrivateAPI: true}, "")
	m.says(noraChat, nora, "ok")
	m.says(selfChat, "", "a note")
	for _, sent := range m.sent(2) {
		if want := map[string]string{noraChat: "ok", selfChat: "a note"}[sent.Chat]; sent.Text != want {
			t.Errorf("%q in %s", sent.Text, sent.Chat)
		}
	}
	m.awaitMetric(results("ignored", "own-message"), 2)
	m.says(noraChat, nora, "ok") // another message, which repeats ours
	m.says(selfChat, bluebubblestest.Address, "a note")
	m.sent(3)
	m.awaitMetric(results("ignored", "own-message"), 4)
	m.says(noraChat, "", "from my phone")
	m.awaitMetric(results("stored", "from-me"), 1)
	if sent := m.sent(3); len(sent) != 3 || m.mac.Reads(noraChat) != 2 {
		t.Errorf("%d posts, marked as read %d times", len(sent), m.mac.Reads(noraChat))
	}
}

// TestALostWebhookIsAnsweredWithoutBackfill checks that a message whose webhook is lost starts a run
// also if catch-up is off, because it is new.
func TestALostWebhookIsAnsweredWithoutBackfill(t *testing.T) {
	t.Parallel()
	var lost atomic.Bool
	lost.Store(true)
	m := openIMessage(t, bluebubblestest.Options{Webhooks: func(event string) []time.Duration {
		if event == "new-message" && lost.Swap(false) {
			return nil
		}
		return []time.Duration{0}
	}}, "catch_up: {max_age: 0s}\n")
	m.says(noraChat, nora, "one")
	m.says(noraChat, nora, "two") // its webhook shows the gap
	sent := m.sent(2)
	if sent[0].Text != "one" || sent[1].Text != "two" {
		t.Errorf("the answers are %+v", sent)
	}
}

// TestAnUnknownOutcomeIsSettled checks that a send without an answer is found by its text, that
// a missing one is not sent again before four timeouts have passed, and that our post has no
// effect meanwhile, although nothing shows that it is ours.
func TestAnUnknownOutcomeIsSettled(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{BodyOnly: true}, "")
	const sent = `parley_deliveries_total{state="sent",workspace="home"}`
	m.mac.Script("POST message/text", bluebubblestest.Fault{Effect: true, Status: http.StatusInternalServerError})
	m.says(noraChat, nora, "one")
	m.heard(m.sends)
	m.sent(1)
	m.clock.advance(9 * time.Second)
	m.awaitMetric(sent, 1)
	m.awaitMetric(results("ignored", "own-message"), 1)

	m.mac.Script("POST message/text", bluebubblestest.Fault{Status: http.StatusInternalServerError})
	m.says(noraChat, nora, "two")
	m.heard(m.sends)
	for len(m.queries) > 0 {
		<-m.queries
	}
	m.clock.advance(9 * time.Second) // after the call's time and less than four timeouts
	m.heard(m.queries)               // the outbox asks for its post
	if got := m.mac.Sent(); len(got) != 1 {
		t.Errorf("the post was sent again: %+v", got)
	}
	late := m.mac.Put(bluebubblestest.Message{Chat: noraChat, Text: "two"}) // without a temporary guid
	m.clock.advance(10 * time.Second)
	m.awaitMetric(sent, 2)
	m.mac.Script("POST message/text", bluebubblestest.Fault{Status: http.StatusInternalServerError})
	m.says(noraChat, nora, "three")
	for len(m.mac.Sent()) < 2 { // sent again once it is certain that it was not sent
		m.clock.advance(time.Second)
		if !m.poll() {
			t.Fatalf("the post was not sent\n%s%s", m.state(), m.log)
		}
	}
	m.awaitMetric(sent, 3)
	if got := m.mac.Sent(); len(got) != 2 || got[1].Text != "three" {
		t.Errorf("sent %+v beside %s", got, late.GUID)
	}
}

// TestAnUndeliveredPostIsOurs checks that a post which Messages could not deliver is no message of
// the account's owner, and that it is not taken for the next post with the same text.
func TestAnUndeliveredPostIsOurs(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{}, "")
	m.mac.Script("POST message/text", bluebubblestest.Fault{Status: http.StatusInternalServerError})
	m.says(noraChat, nora, "one")
	m.heard(m.sends)
	m.mac.Say(bluebubblestest.Message{Chat: noraChat, Text: "one", Error: 22})
	m.clock.advance(9 * time.Second)
	m.awaitMetric(`parley_deliveries_total{state="failed",workspace="home"}`, 1)
	m.awaitMetric(results("ignored", "own-message"), 1)
	m.mac.Script("POST message/text", bluebubblestest.Fault{Status: http.StatusInternalServerError})
	m.says(noraChat, nora, "one")
	for len(m.mac.Sent()) == 0 {
		m.clock.advance(time.Second)
		if !m.poll() {
			t.Fatalf("the post was not sent again\n%s%s", m.state(), m.log)
		}
	}
	m.awaitMetric(`parley_deliveries_total{state="sent",workspace="home"}`, 1)
}

// TestARunawayIsStopped checks the loop guard for a chat in which our posts come back as
// another person's.
func TestARunawayIsStopped(t *testing.T) {
	t.Parallel()
	var mac *bluebubblestest.Server
	m := openIMessage(t, bluebubblestest.Options{OnSend: func(sent bluebubblestest.Message) {
		mac.Say(bluebubblestest.Message{Chat: sent.Chat, From: nora, Text: sent.Text})
	}}, "policy: {loop_guard: {runs: 3, per: 5m}}\n")
	mac = m.mac
	m.says(noraChat, nora, "I'm away.")
	m.awaitMetric(results("stored", "loop-guard"), 1)
	if got := len(m.mac.Sent()); got != 4 || m.warnings("thread") == 0 {
		t.Errorf("%d posts\n%s", got, m.log)
	}
}

// TestWeekOldWebhooks checks that a restart of the server, which repeats a week of webhooks,
// starts no run.
func TestWeekOldWebhooks(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{}, "")
	const week = 7 * 24 * time.Hour
	for i := range 100 {
		m.mac.Put(bluebubblestest.Message{Chat: noraChat, From: nora, Text: fmt.Sprint(i), CreatedAt: time.Now().Add(-week)})
	}
	m.mac.Replay()
	for range 2 {
		for _, d := range m.mac.Replay() {
			if _, err := d.Wait(m.ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.awaitMetric(results("stored", "too-old"), 100)
	if got := m.mac.Sent(); len(got) != 0 {
		t.Errorf("%d replies", len(got))
	}
}

// TestNoPasswordLeaks looks for the server's password and the webhook's secret, also in the
// forms that URLs give them, in all that the daemon logged, stored and answered.
func TestNoPasswordLeaks(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{}, "")
	leaks := new(log)
	m.mac.Script("POST message/text", bluebubblestest.Fault{Status: http.StatusBadRequest}, bluebubblestest.Fault{Cut: true})
	m.mac.Script("POST contact/query", bluebubblestest.Fault{Cut: true})
	m.says(noraChat, nora, "one")
	m.awaitMetric(`parley_deliveries_total{state="failed",workspace="home"}`, 1)
	m.says(noraChat, nora, "two")
	m.clock.advance(9 * time.Second)
	m.mac.SetAway(true)
	for _, secret := range []string{"wrong", url.PathEscape(hookCanary + "x")} {
		got := m.send(http.NewRequestWithContext(m.ctx, http.MethodPost, m.url+"/hooks/bluebubbles/home/"+secret, strings.NewReader("{}")))
		fmt.Fprintln(leaks, got.status, got.body)
		if got.status != http.StatusUnauthorized {
			t.Errorf("%s: status %d", secret, got.status)
		}
	}
	m.restart() // the poller fails
	for !strings.Contains(m.get("/readyz").body, `"home":{"state":"down"`) {
		if !m.poll() {
			t.Fatalf("the workspace is not down\n%s", m.log)
		}
	}
	for _, path := range []string{"/metrics", "/readyz"} {
		fmt.Fprintln(leaks, m.get(path).body)
	}
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	text := leaks.String() + m.log.String()
	for _, file := range stored(t, m.dir) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text += string(raw)
	}
	for _, form := range []string{macPassword, url.QueryEscape(macPassword), url.PathEscape(macPassword), hookCanary} {
		if at := strings.Index(text, form); at >= 0 {
			t.Errorf("%q leaked: …%s", form, text[max(0, at-200):at])
		}
	}
}

// TestReloadRegistersAnotherAddress proves that a change of public_url reaches the server by the
// next poll.
func TestReloadRegistersAnotherAddress(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{}, "")
	edit := func(name, registered string, changes ...string) {
		content, err := os.ReadFile(filepath.Join(m.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		m.change(name, strings.NewReplacer(changes...).Replace(string(content)))
		isNew := func(w bluebubblestest.Webhook) bool { return strings.Contains(w.URL, registered) }
		for !slices.ContainsFunc(m.mac.Registered(), isNew) {
			if !m.poll() {
				t.Fatalf("%s is not registered\n%s", registered, m.log)
			}
		}
	}
	edit("workspaces/home.yaml", "/home/another-", hookCanary, "another-"+hookCanary, "poll: 1h", "poll: 10ms") // a new connection
	edit("parley.yaml", "https://parley.example/hooks/bluebubbles/home/another-", "shutdown:", "public_url: https://parley.example\nshutdown:")
}

// TestALinkBelongsToItsText: Messages takes a link out of a text and sends it as a message of its own, which
// names nobody. In a group, too, it is input of the text's run, which is answered once.
func TestALinkBelongsToItsText(t *testing.T) {
	t.Parallel()
	const group, page = "iMessage;+;chat7", "https://example.org/a"
	m := openIMessage(t, bluebubblestest.Options{PrivateAPI: true}, `channels: [{id: "`+group+`", agent: helper}]`)
	link := bluebubblestest.Message{Chat: group, From: nora, Text: page, Balloon: "com.apple.messages.URLBalloonProvider"}
	m.says(group, nora, "parley, look at")
	first := m.nextRequest()
	m.mac.Say(link)
	m.awaitMetric(results("stored", "mention"), 2)
	m.answer(first, replyWith("At what?"))
	again := m.answerNext(replyWith("A page."))
	if n := len(again.messages); n < 2 || !strings.HasSuffix(again.messages[n-1].Content, page) || again.messages[n-1].Role != "user" {
		t.Errorf("asked again: %q", again.messages)
	}
	if sent := m.sent(1); sent[0].Text != "A page." {
		t.Errorf("sent %q", sent[0].Text)
	}
}

// TestAPictureComesAfterItsText: Messages tells the text first, and its picture later. The agent is asked once, with the
// picture. A picture that no text has told of is input of its run's repetition.
func TestAPictureComesAfterItsText(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{PrivateAPI: true}, `channels: [{id: "`+noraChat+`", agent: helper}]`)
	ends := func(a *modelRequest, picture string) {
		t.Helper()
		if last := a.messages[len(a.messages)-1]; !strings.HasSuffix(last.Content, "(file: "+picture+", image/png)") {
			t.Errorf("the agent was asked %q", last.Content)
		}
	}
	said, _ := m.mac.Say(bluebubblestest.Message{Chat: noraChat, From: nora, Text: "what is this?", Pending: 1})
	m.awaitMetric(results("stored", "direct"), 1)
	m.mac.Arrive(said.GUID, bluebubblestest.Attachment{GUID: "at_1", Name: "fern.png", MimeType: "image/png"})
	ends(m.answerNext(replyWith("A fern.")), "fern.png")
	m.sent(1)

	said, _ = m.mac.Say(bluebubblestest.Message{Chat: noraChat, From: nora, Text: "and this?"})
	first := m.nextRequest()
	m.mac.Arrive(said.GUID, bluebubblestest.Attachment{GUID: "at_2", Name: "moss.png", MimeType: "image/png"})
	m.awaitMetric(strings.Replace(results("updated", ""), `"message"`, `"edit"`, 1), 1)
	m.answer(first, replyWith("What?"))
	ends(m.answerNext(replyWith("Moss.")), "moss.png")
	if sent := m.sent(2); sent[0].Text != "A fern." || sent[1].Text != "Moss." {
		t.Errorf("sent %q and %q", sent[0].Text, sent[1].Text)
	}
}
