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

// calls lets a test see the calls of one method.
func calls(method string) (fake slacktest.Options, made <-chan slacktest.Call) {
	seen := make(chan slacktest.Call, 64)
	return slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == method {
			seen <- c
		}
	}}, seen
}

// call waits for the next one.
func (h *house) call(made <-chan slacktest.Call) slacktest.Call {
	h.t.Helper()
	select {
	case c := <-made:
		return c
	case <-h.ctx.Done():
		h.t.Fatalf("no call was made\n%s", h.log)
		return slacktest.Call{}
	}
}

// TestAPostIsThereOnce lets the first call of a post go wrong in every way, and
// then enough time pass for what has to be done about it.
func TestAPostIsThereOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]slacktest.Fault{
		"429":                          slacktest.RateLimited(time.Second),
		"429 without a time":           {Status: http.StatusTooManyRequests},
		"500 before it took effect":    {Status: http.StatusInternalServerError},
		"503 after it took effect":     {Status: http.StatusServiceUnavailable, Effect: true},
		"cut off before":               {Cut: true},
		"cut off after":                {Cut: true, Effect: true},
		"cut off in the answer":        {Cut: true, Effect: true, Body: `{"ok":true,`},
		"an answer that is none":       {Effect: true, Body: `<html>`},
		"internal_error, in spite":     {Effect: true, Error: "internal_error"},
		"a proxy that asks for a name": {Status: http.StatusProxyAuthRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, made := calls("chat.postMessage")
			h := open(t, plan{fake: fake})
			h.slack.Script("chat.postMessage", fault)
			h.mention("are you there?")
			h.asks(says("Yes."))
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

// TestAPostThatTakesEffectLateIsFound holds the effect back until the caller has
// given up: only after the wait for that is the platform asked.
func TestAPostThatTakesEffectLateIsFound(t *testing.T) {
	t.Parallel()
	late, gone := make(chan struct{}), make(chan struct{})
	fake, asked := calls("conversations.replies")
	h := open(t, plan{fake: fake, slack: "timeout: 500ms"})
	h.slack.Script("chat.postMessage", slacktest.Fault{Hold: late, Gone: gone})
	h.mention("are you there?")
	h.asks(says("Yes."))
	h.slack.Script("conversations.replies", slacktest.Fault{Status: http.StatusBadGateway}) // it can't tell yet
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

func TestARefusedPostEndsItsReply(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.Script("chat.postMessage", slacktest.Fault{Error: "is_archived"})
	h.mention("tell me everything")
	h.asks(says(strings.Repeat("Many words. ", 1700))) // more than one post holds
	h.awaitMetric(failed, 1)
	h.mention("then less")
	h.asks(says("Gladly."))
	if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "Gladly." {
		t.Errorf("%+v", posts)
	}
}

func TestALongReplyComesInOrder(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.mention("count")
	h.asks(says(strings.Repeat("one two three\n\n", 1700)))
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

// TestARateLimitHoldsUpItsChannelAlone: another channel's reply passes by.
func TestARateLimitHoldsUpItsChannelAlone(t *testing.T) {
	t.Parallel()
	fake, made := calls("chat.postMessage")
	h := open(t, plan{fake: fake})
	h.slack.Script("chat.postMessage", slacktest.RateLimited(10*time.Minute))
	h.mention("here")
	h.asks(says("Late."))
	h.call(made)
	m := h.said("hello")
	m.Channel, m.ChannelType = direct, "im"
	h.accept(m.Event())
	h.asks(says("At once."))
	if posts := h.posts(1); posts[0].Text != "At once." {
		t.Errorf("%+v", posts)
	}
	h.clock.advance(10 * time.Minute)
	if posts := h.posts(2); posts[1].Text != "Late." {
		t.Errorf("%+v", posts)
	}
}

// TestAgentsWordsHaveNoEffectOfTheirOwn: nobody is called by what a model says.
func TestAgentsWordsHaveNoEffectOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.mention("hello")
	h.asks(says("<!channel> & <!subteam^S1> [click](javascript:alert) <@U0MARA> **done**"))
	got := h.posts(1)[0].Markdown
	if strings.Contains(got, "<!") || strings.Contains(got, "<javascript") || !strings.Contains(got, "*done*") || !strings.Contains(got, "<@U0MARA>") {
		t.Errorf("%s", got)
	}
}
