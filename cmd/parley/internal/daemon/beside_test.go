package daemon_test

import (
	"testing"

	"parley/adapters/slack/slacktest"
)

// TestAnswerBesideItsQuestion: with policy.reply the answer to a question at the top is in the channel, grows there by edits and has a
// reaction as its sign of work. The question keeps its thread: an answer to a message in the thread is there.
func TestAnswerBesideItsQuestion(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: "timeout: 5s, preview: stream, preview_every: 10ms", acme: "policy: {reply: channel}"})
	m := h.putMention("what now?")
	a := h.nextRequest()
	h.awaitWorkingSign(m, true)
	beside := func() *slacktest.Post {
		for _, p := range h.slack.Posts() {
			if p.Channel == m.Channel && p.ThreadTS == "" && !p.Deleted {
				return &p
			}
		}
		return nil
	}
	shows := func(text string) {
		t.Helper()
		for p := beside(); p == nil || p.Text != text; p = beside() {
			if !h.poll() {
				t.Fatalf("beside the question is %+v, want %q\n%s", p, text, h.log)
			}
		}
	}
	h.answer(a, streamPieces([]string{"wait ", "a little"}, func(i int) {
		if i == 0 {
			shows("wait")
		}
	}))
	shows("wait a little")
	h.awaitWorkingSign(m, false)
	if texts, open := h.visible(m), h.slack.OpenStreams(); len(texts) > 0 || len(open) > 0 {
		t.Errorf("in the thread: %q; streams: %v", texts, open)
	}

	below := h.newMessage("<@" + slacktest.BotUser + "> and then?")
	below.ThreadTS = m.TS
	h.accept(below.Mention())
	h.answerNext(replyWith("nothing"))
	h.awaitVisible(m, "the second answer", func(texts []string) bool { return len(texts) == 1 && texts[0] == "nothing" })
}
