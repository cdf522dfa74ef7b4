package daemon_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestARunOutlivesItsDaemon stops the daemon while the agent is being asked: it
// is asked again after the start, as the same run, and nobody hears of it.
func TestARunOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.mention("a hard question")
	first := h.ask()
	h.restart()
	h.hangsUp(first)
	second := h.ask()
	if second.run != first.run || first.run == "" {
		t.Errorf("asked as run %q, then %q", first.run, second.run)
	}
	same(t, second.messages, first.messages)
	if posts := h.slack.Posts(); len(posts) != 0 {
		t.Errorf("%+v", posts)
	}
	h.answer(second, says("An answer."))
	if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "An answer." {
		t.Errorf("%+v", posts)
	}
}

// TestWhatIsKnownOutlivesItsDaemon: what was accepted is not accepted again, and
// a thread goes on where it was.
func TestWhatIsKnownOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.mention("remember the rake")
	h.asks(says("I will."))
	h.posts(1)
	h.awaitMetric(sent, 1)
	h.restart()
	h.accept(m.Mention())
	h.awaitMetric(settled("message", "duplicate", ""), 1)
	next := h.said("<@U0BOT> what was it?")
	next.ThreadTS = m.TS
	h.accept(next.Mention())
	same(t, h.asks(says("The rake.")).messages, []spoken{
		{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> remember the rake"},
		{"assistant", "I will."},
		{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> what was it?"},
	})
	if posts := h.posts(2); len(posts) != 2 {
		t.Errorf("%+v", posts)
	}
}

func TestTwoDaemonsDoNotShareAStore(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	other := &house{t: t, ctx: h.ctx, dir: h.dir, clock: h.clock, log: new(log)}
	err := other.start(filepath.Join(h.dir, "parley.yaml"))
	if err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "parley.db") {
		t.Errorf("the second daemon: %v", err)
	}
	h.mention("still there?") // the first goes on
	h.asks(says("Yes."))
	h.posts(1)
}
