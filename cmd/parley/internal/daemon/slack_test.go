package daemon_test

import (
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack/slacktest"
)

// envelopesMetric returns the name of the figure of envelopes with a result.
func envelopesMetric(kind, disposition, reason string) string {
	return `parley_envelopes_total{disposition="` + disposition + `",kind="` + kind + `",reason="` + reason + `",workspace="acme"}`
}

func TestMentionIsAnsweredInThread(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	m := h.mention("when do we water?")
	asked := h.answerNext(replyWith("At six."))
	if len(asked.messages) != 1 || asked.messages[0] != (chatMessage{"user", "[Mara (<@U0MARA>)]: <@U0BOT> when do we water?"}) {
		t.Errorf("the agent was asked %q", asked.messages)
	}
	post := h.posts(1)[0]
	if post.Channel != room || post.ThreadTS != m.TS || post.Text != "At six." {
		t.Errorf("%+v", post)
	}
	if !regexp.MustCompile(`^[a-z0-9]{1,25}$`).MatchString(post.Key()) {
		t.Errorf("the post's metadata is %s", post.Metadata)
	}
}

func TestDirectMessageIsAnswered(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.newMessage("hello")
	m.Channel, m.ChannelType = direct, "im"
	h.accept(m.Event())
	h.answerNext(replyWith("Hi."))
	if post := h.posts(1)[0]; post.Channel != direct || post.ThreadTS != "" || post.Text != "Hi." {
		t.Errorf("%+v", post)
	}
}

func TestReplyWithoutMentionIsPassive(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.mention("are you there?")
	h.answerNext(replyWith("Yes."))
	h.posts(1)
	follow := h.newMessage("good")
	follow.ThreadTS = m.TS
	h.accept(follow.Event())
	h.awaitMetric(envelopesMetric("message", "stored", "no-mention"), 1) // the thread's root is not ours
	again := h.newMessage("<@U0BOT> and now?")
	again.ThreadTS = m.TS
	h.accept(again.Event())
	want := []chatMessage{
		{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> are you there?"},
		{"assistant", "Yes."},
		{"system", "[Thread context — prior messages in this thread, newest last]\n- U0MARA (<@U0MARA>): good"},
		{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> and now?"},
	}
	same(t, h.answerNext(replyWith("Still.")).messages, want)
}

func TestMessageAndMentionEventAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]func(slacktest.Message) [2][]byte{
		"message first": func(m slacktest.Message) [2][]byte { return [2][]byte{m.Event(), m.Mention()} },
		"mention first": func(m slacktest.Message) [2][]byte { return [2][]byte{m.Mention(), m.Event()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{})
			for _, body := range events(h.newMessage("<@U0BOT> once, please")) {
				h.accept(body)
			}
			h.awaitMetric(envelopesMetric("message", "duplicate", "duplicate"), 1)
			h.answerNext(replyWith("Once."))
			h.posts(1) // the next one is in another thread, so it might be faster
			h.mention("and the next")
			h.answerNext(replyWith("Twice."))
			if posts := h.posts(2); len(posts) != 2 || posts[0].Text != "Once." || posts[1].Text != "Twice." {
				t.Errorf("%+v", posts)
			}
		})
	}
}

func TestHookSignature(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	body := h.newMessage("<@U0BOT> hello").Mention()
	for name, c := range map[string]struct {
		secret string
		at     time.Duration
		reason string
	}{
		"wrong": {"another", 0, "bad-signature"},
		"early": {signingSecret, 6 * time.Minute, "stale-timestamp"},
		"late":  {signingSecret, -6 * time.Minute, "stale-timestamp"},
	} {
		got := h.send(slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", c.secret, time.Now().Add(c.at), body))
		if got.status != http.StatusUnauthorized || h.metric(`parley_rejected_requests_total{reason="`+c.reason+`"}`) == 0 {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	if metrics := h.get("/metrics").body; strings.Contains(metrics, "parley_envelopes_total{") {
		t.Errorf("an envelope was stored:\n%s", metrics)
	}
	// Slack sends an event again that was not acknowledged. It is no duplicate.
	h.accept(body)
	h.answerNext(replyWith("Hello."))
	h.posts(1)
}

// TestUnknownHooksAnswerLikeKnownOnes sends the same requests to the hook of a workspace, with a wrong secret
// or signature, and to one of no workspace. The answers and the work before them are the same: both
// wait for the body if the headers are sound.
func TestUnknownHooksAnswerLikeKnownOnes(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.client = &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute, DisableKeepAlives: true}}
	h.change("workspaces/phone.yaml", "id: phone\nplatform: bluebubbles\nagent: helper\nbluebubbles: {url: 'http://127.0.0.1:1', password: pass-of-the-test, webhook_secret: "+hookCanary+"}\n")
	body := h.newMessage("<@U0BOT> hello").Mention()
	refused := func(path string, body []byte, change func(http.Header)) (answer, bool) {
		t.Helper()
		waited := false
		ctx := httptrace.WithClientTrace(h.ctx, &httptrace.ClientTrace{Got100Continue: func() { waited = true }})
		request, err := slacktest.NewRequest(ctx, h.url+path, "another", time.Now(), body)
		if err == nil {
			request.Header.Set("Expect", "100-continue")
			change(request.Header)
		}
		return h.send(request, err), waited
	}
	for name, c := range map[string]struct {
		body   []byte
		change func(http.Header)
	}{
		"a wrong signature": {body, func(http.Header) {}},
		"no signature":      {body, func(h http.Header) { h.Del("X-Slack-Signature") }},
		"an old signature":  {body, func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "1700000000") }},
		"a large body":      {make([]byte, 2<<20), func(http.Header) {}},
	} {
		pairs := map[string]string{"/hooks/slack/acme": "/hooks/slack/nobody", "/hooks/bluebubbles/phone/guessed": "/hooks/bluebubbles/nobody/guessed"}
		if name == "a wrong signature" {
			pairs["/hooks/slack/ours"] = "/hooks/slack/nobody" // it belongs to another platform
		}
		for known, unknown := range pairs {
			want, wants := refused(known, c.body, c.change)
			got, reads := refused(unknown, c.body, c.change)
			if got.status != want.status || got.body != want.body || reads != wants {
				t.Errorf("%s: %s answers %d %q, body read: %v; %s answers %d %q, body read: %v", name, known, want.status, want.body, wants, unknown, got.status, got.body, reads)
			}
			if strings.HasPrefix(known, "/hooks/slack") && name == "a wrong signature" && !reads {
				t.Errorf("%s does not read the body that the signature covers", unknown)
			}
		}
	}
}

func TestRetriedHookIsDuplicate(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	body := h.newMessage("<@U0BOT> hello").Mention()
	for _, number := range []string{"1", "2"} { // the daemon did not get the first try
		request, err := slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", signingSecret, time.Now(), body)
		if err == nil {
			request.Header.Set("X-Slack-Retry-Num", number)
			request.Header.Set("X-Slack-Retry-Reason", "http_timeout")
		}
		if got := h.send(request, err); got.status != http.StatusOK {
			t.Errorf("retry %s: %d %s", number, got.status, got.body)
		}
	}
	h.awaitMetric(envelopesMetric("message", "duplicate", "duplicate"), 1)
	h.answerNext(replyWith("Hello."))
	if posts := h.posts(1); len(posts) != 1 {
		t.Errorf("%+v", posts)
	}
}

func TestURLVerification(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	if got := h.hook([]byte(`{"type":"url_verification","challenge":"3eZbrw1a"}`)); got.status != http.StatusOK || got.body != "3eZbrw1a" {
		t.Errorf("%d %q", got.status, got.body)
	}
}

// TestUnknownHook compares the answers of hooks that do not exist with the answer of one that
// does, to a wrong secret.
func TestUnknownHook(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	wrong := func(path string) answer {
		got := h.send(slacktest.NewRequest(h.ctx, h.url+path, "wrong", time.Now(), []byte(`{}`)))
		got.header.Del("Date")
		return got
	}
	known := wrong("/hooks/slack/acme")
	for _, path := range []string{"/hooks/slack/nobody", "/hooks/slack/ours", "/hooks/web/ours", "/hooks/bluebubbles/acme"} {
		if got := wrong(path); got.status != http.StatusUnauthorized || got.body != known.body || cmp.Diff(known.header, got.header) != "" {
			t.Errorf("%s: %+v, want %+v", path, got, known)
		}
	}
}

func TestEventsOfAnotherTeamAreIgnored(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1) // our team is known from here on
	foreign := string(h.newMessage("<@U0GUEST> hello").Mention())
	h.accept([]byte(strings.NewReplacer(slacktest.Team, "T0OTHER", slacktest.BotUser, "U0GUEST").Replace(foreign)))
	h.awaitMetric(envelopesMetric("message", "ignored", "other-workspace"), 1)
	h.mention("hello") // the daemon learns the app's id from this event
	h.answerNext(replyWith("Hello."))
	h.accept([]byte(strings.ReplaceAll(string(h.newMessage("<@U0BOT> hello").Mention()), slacktest.App, "A0OTHER")))
	h.awaitMetric(envelopesMetric("message", "ignored", "other-workspace"), 2)
}

// TestEventsWaitForOwnIdentity sends events before auth.test has succeeded: a mention, and an
// edit that adds a mention, without the authorizations that name our bot; a mention that says
// itself that it is for us; and another team's. None runs before our team is known, and the
// other team's never does.
func TestEventsWaitForOwnIdentity(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	h := open(t, plan{fake: slacktest.Options{Plan: func(c slacktest.Call) slacktest.Fault {
		if c.Method == "auth.test" {
			return slacktest.Fault{Hold: release}
		}
		return slacktest.Fault{}
	}}})
	bare := func(body []byte) []byte {
		return regexp.MustCompile(`,?"authorizations":\[[^]]*\]`).ReplaceAll(body, nil)
	}
	before := h.newMessage("hello")
	h.accept(bare(before.Event()))
	h.accept(bare(edited(before, "<@U0BOT> hello")))
	h.accept(bare(h.newMessage("<@U0BOT> and hello").Event()))
	h.mention("this one says itself that it is for us")
	foreign := string(h.newMessage("<@U0GUEST> hello").Mention())
	h.accept([]byte(strings.NewReplacer(slacktest.Team, "T0OTHER", slacktest.BotUser, "U0GUEST").Replace(foreign)))
	h.awaitMetric("parley_pending_envelopes", 5)
	close(release)
	h.awaitMetric(envelopesMetric("message", "ignored", "other-workspace"), 1)
	for range 3 {
		h.answerNext(replyWith("Hello."))
	}
	h.posts(3)
}
