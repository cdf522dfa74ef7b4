package daemon_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRunSurvivesRestart stops the daemon during a request to the agent. The next start
// repeats the request as the same run, and nothing is posted before.
func TestRunSurvivesRestart(t *testing.T) {
	t.Parallel()
	h := open(t, plan{stop: 6 * time.Second}) // the stop waits for the run first
	h.mention("a hard question")
	first := h.nextRequest()
	h.restart()
	h.awaitHangup(first)
	second := h.nextRequest()
	if second.run != first.run || first.run == "" {
		t.Errorf("asked as run %q, then %q", first.run, second.run)
	}
	same(t, second.messages, first.messages)
	if posts := h.slack.Posts(); len(posts) != 0 {
		t.Errorf("%+v", posts)
	}
	h.answer(second, replyWith("An answer."))
	if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "An answer." {
		t.Errorf("%+v", posts)
	}
}

// TestMessagesSurviveRestart: an accepted message is a duplicate after the restart, and a
// thread goes on.
func TestMessagesSurviveRestart(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.mention("remember the rake")
	h.answerNext(replyWith("I will."))
	h.posts(1)
	h.awaitMetric(sent, 1)
	h.restart()
	h.accept(m.Mention())
	h.awaitMetric(envelopesMetric("message", "duplicate", "duplicate"), 1)
	next := h.newMessage("<@U0BOT> what was it?")
	next.ThreadTS = m.TS
	h.accept(next.Mention())
	same(t, h.answerNext(replyWith("The rake.")).messages, []chatMessage{
		{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> remember the rake"},
		{"assistant", "I will."},
		{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> what was it?"},
	})
	if posts := h.posts(2); len(posts) != 2 {
		t.Errorf("%+v", posts)
	}
}

func TestSecondDaemonOnStoreIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	other := &harness{t: t, ctx: h.ctx, dir: h.dir, clock: h.clock, log: new(log)}
	err := other.start(filepath.Join(h.dir, "parley.yaml"))
	if err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "parley.db") {
		t.Errorf("the second daemon: %v", err)
	}
	h.mention("still there?") // the first daemon goes on
	h.answerNext(replyWith("Yes."))
	h.posts(1)
}
