package daemon_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

const (
	sent   = `parley_deliveries_total{state="sent",workspace="acme"}`
	failed = `parley_deliveries_total{state="failed",workspace="acme"}`
)

// calls returns the options of a fake Slack that passes on the calls of one method.
func calls(method string) (fake slacktest.Options, made <-chan slacktest.Call) {
	seen := make(chan slacktest.Call, 64)
	return slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == method {
			seen <- c
		}
	}}, seen
}

// call waits for the next call.
func (h *harness) call(made <-chan slacktest.Call) slacktest.Call {
	h.t.Helper()
	select {
	case c := <-made:
		return c
	case <-h.ctx.Done():
		h.t.Fatalf("no call was made\n%s", h.log)
		return slacktest.Call{}
	}
}

// TestPostIsSentOnce, however the first call of a post fails. The clock then passes the time
// after which the daemon looks for the post.
func TestPostIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]slacktest.Fault{
		"429":                           slacktest.RateLimited(time.Second),
		"429 without Retry-After":       {Status: http.StatusTooManyRequests},
		"500 without effect":            {Status: http.StatusInternalServerError},
		"503 with effect":               {Status: http.StatusServiceUnavailable, Effect: true},
		"connection cut without effect": {Cut: true},
		"connection cut with effect":    {Cut: true, Effect: true},
		"answer cut":                    {Cut: true, Effect: true, Body: `{"ok":true,`},
		"answer is not JSON":            {Effect: true, Body: `<html>`},
		"internal_error with effect":    {Effect: true, Error: "internal_error"},
		"proxy authentication":          {Status: http.StatusProxyAuthRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, made := calls("chat.postMessage")
			h := open(t, plan{fake: fake})
			h.slack.Script("chat.postMessage", fault)
			h.mention("are you there?")
			h.answerNext(replyWith("Yes."))
			first := h.call(made)
			h.clock.advance(time.Minute)
			h.awaitMetric(sent, 1)
			posts := h.posts(1)
			if len(posts) != 1 || posts[0].Text != "Yes." {
				t.Errorf("%+v", posts)
			}
			if key := posts[0].Key(); key == "" || !strings.Contains(first.Form.Get("metadata"), key) {
				t.Errorf("posted under %q, first tried with %s", key, first.Form.Get("metadata"))
			}
		})
	}
}

// TestLatePostIsFound: a post takes effect after the daemon has given up the call. The daemon
// asks the platform only after the wait for such an effect.
func TestLatePostIsFound(t *testing.T) {
	t.Parallel()
	late, gone := make(chan struct{}), make(chan struct{})
	fake, asked := calls("conversations.replies")
	h := open(t, plan{fake: fake, slack: "timeout: 500ms"})
	h.slack.Script("chat.postMessage", slacktest.Fault{Hold: late, Gone: gone})
	h.mention("are you there?")
	h.answerNext(replyWith("Yes."))
	h.slack.Script("conversations.replies", slacktest.Fault{Status: http.StatusBadGateway}) // the first read-back fails
	select {
	case <-gone:
	case <-h.ctx.Done():
		t.Fatal("the call did not end")
	}
	if len(h.slack.Posts()) != 0 || len(asked) != 0 {
		t.Fatalf("%d posts, %d read back\n%s", len(h.slack.Posts()), len(asked), h.log)
	}
	close(late)
	h.posts(1)
	h.clock.advance(time.Minute)
	h.call(asked)
	h.clock.advance(time.Minute)
	h.awaitMetric(sent, 1)
	if posts := h.posts(1); len(posts) != 1 {
		t.Errorf("%+v", posts)
	}
}

func TestRefusedPostEndsReply(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.Script("chat.postMessage", slacktest.Fault{Error: "is_archived"})
	h.mention("tell me everything")
	h.answerNext(replyWith(strings.Repeat("Many words. ", 1700))) // more than one post
	h.awaitMetric(failed, 1)
	h.mention("then less")
	h.answerNext(replyWith("Gladly."))
	if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "Gladly." {
		t.Errorf("%+v", posts)
	}
}

func TestLongReplyIsInOrder(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.mention("count")
	h.answerNext(replyWith(strings.Repeat(strings.Repeat("one two three\n", 100)+"\n", 17)))
	h.awaitMetric(sent, 3)
	keys := map[string]bool{}
	posts := h.posts(3)
	for _, p := range posts {
		if p.ThreadTS != m.TS || len(p.Markdown) > 12_000 {
			t.Errorf("in %s, %d bytes", p.ThreadTS, len(p.Markdown))
		}
		keys[p.Key()] = true
	}
	if len(posts) != 3 || len(keys) != 3 {
		t.Errorf("%d posts under %d keys", len(posts), len(keys))
	}
}

// TestRateLimitDelaysOneChannel: a reply in another channel does not wait.
func TestRateLimitDelaysOneChannel(t *testing.T) {
	t.Parallel()
	fake, made := calls("chat.postMessage")
	h := open(t, plan{fake: fake})
	h.slack.Script("chat.postMessage", slacktest.RateLimited(10*time.Minute))
	h.mention("here")
	h.answerNext(replyWith("Late."))
	h.call(made)
	m := h.newMessage("hello")
	m.Channel, m.ChannelType = direct, "im"
	h.accept(m.Event())
	h.answerNext(replyWith("At once."))
	if posts := h.posts(1); posts[0].Text != "At once." {
		t.Errorf("%+v", posts)
	}
	for len(h.slack.Posts()) < 2 && h.poll() { // the ten minutes begin when the daemon has the response
		h.clock.advance(2 * time.Second)
	}
	if posts := h.posts(2); posts[1].Text != "Late." {
		t.Errorf("%+v", posts)
	}
}

// TestReplyTokensArePlainText: a model's text notifies nobody, unless the agent saw the token
// in its input.
func TestReplyTokensArePlainText(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.mention("hello")
	h.answerNext(replyWith("<!channel> & <!subteam^S1> [click](javascript:alert) <@U0MARA> **done**"))
	got := h.posts(1)[0].Markdown
	if strings.Contains(got, "<!") || strings.Contains(got, "<javascript") || !strings.Contains(got, "*done*") || !strings.Contains(got, "<@U0MARA>") {
		t.Errorf("%s", got)
	}
}
