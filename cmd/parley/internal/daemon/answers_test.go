package daemon_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

// live shows growing answers, and a reaction while the agent works.
const live = "timeout: 5s, preview: stream, preview_every: 10ms, working: reaction, working_emoji: eyes, file_over: 400"

// placed says something to the bot in the garden that stands there too, as what is
// reacted to must.
func (h *house) placed(text string) slacktest.Message {
	h.t.Helper()
	m := h.said("<@" + slacktest.BotUser + "> " + text)
	h.slack.Put(slacktest.Post{Channel: m.Channel, User: m.User, Text: m.Text, TS: m.TS})
	h.accept(m.Mention())
	return m
}

// awaitSign waits until a message has the sign of work, or has it no more.
func (h *house) awaitSign(m slacktest.Message, want bool) {
	h.t.Helper()
	for (len(h.slack.Reactions(m.Channel, m.TS)) > 0) != want {
		if !h.again() {
			h.t.Fatalf("the sign of work is there: %v\n%s%s", !want, h.state(), h.log)
		}
	}
}

// TestAFailureIsToldToTheAskerAlone, and leaves nothing of what was shown before.
func TestAFailureIsToldToTheAskerAlone(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: live, turns: "coalesce: 0s, max_attempts: 1"})
	m := h.placed("what now?")
	a := h.ask()
	h.awaitSign(m, true)
	h.answer(a, func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"half of an answer \"}}]}\n\n"))
		_ = http.NewResponseController(w).Flush()
		h.awaitShown(m, "a half", func(texts []string) bool { return len(texts) == 1 })
		panic(http.ErrAbortHandler)
	})
	for len(h.slack.Ephemerals()) == 0 {
		if !h.again() {
			t.Fatalf("nobody was told\n%s", h.log)
		}
	}
	h.awaitShown(m, "nothing", func(texts []string) bool { return len(texts) == 0 })
	h.awaitSign(m, false)
	if told := h.slack.Ephemerals(); len(told) != 1 || told[0].User != mara || told[0].ThreadTS != m.TS || !strings.HasPrefix(told[0].Text, "Sorry") {
		t.Errorf("%+v", told)
	}
}

// TestADeletedQuestionLeavesNothing of its answer, though it had begun.
func TestADeletedQuestionLeavesNothing(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: live})
	m := h.placed("never mind?")
	a := h.ask()
	h.awaitSign(m, true)
	h.answer(a, grows([]string{"it is ", "of no ", "use"}, func(i int) {
		if i == 1 {
			h.awaitShown(m, "a beginning", func(texts []string) bool { return len(texts) == 1 })
			h.accept(deleted(m))
			h.hangsUp(a)
		}
	}))
	h.awaitShown(m, "nothing", func(texts []string) bool { return len(texts) == 0 })
	h.awaitSign(m, false)
	if open := h.slack.OpenStreams(); len(open) > 0 {
		t.Errorf("still open: %+v", open)
	}
}

// TestAVeryLongReplyIsAFile behind its beginning.
func TestAVeryLongReplyIsAFile(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: live})
	m := h.mention("all of it")
	answer := strings.Repeat("A line of many. ", 2000)
	h.asks(says(answer))
	for len(h.slack.Uploads()) == 0 {
		if !h.again() {
			t.Fatalf("nothing was uploaded\n%s", h.log)
		}
	}
	upload := h.slack.Uploads()[0]
	if post, _ := h.slack.Message(upload.Channel, upload.TS); string(upload.Content) != answer || post.Channel != m.Channel || post.ThreadTS != m.TS {
		t.Errorf("%d bytes in %+v", len(upload.Content), post)
	}
	h.awaitShown(m, "the beginning", func(texts []string) bool {
		return len(texts) > 0 && strings.HasPrefix(answer, texts[0]) && len(texts[0]) > 5000
	})
}

// TestOnlyWhoWasMentionedCanBe: what the agent copies from its transcript works, what
// it makes up is plain text.
func TestOnlyWhoWasMentionedCanBe(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: live})
	m := h.mention("ask <@U0OLIVIA|olivia> too")
	h.asks(says("<@" + mara + "> and <@U0EVE>: <!here> <!subteam^S0ALL>"))
	want := "<@" + mara + "> and <\u200b@U0EVE>: <\u200b!here> <\u200b!subteam^S0ALL>"
	h.awaitShown(m, "the answer", func(texts []string) bool { return slices.Equal(texts, []string{want}) })
}
