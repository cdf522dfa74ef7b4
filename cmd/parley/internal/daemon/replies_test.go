package daemon_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

// livePreview configures live previews, and a reaction as the sign that the agent is working.
const livePreview = "timeout: 5s, preview: stream, preview_every: 10ms, working: reaction, working_emoji: eyes, file_over: 400"

// putMention mentions the bot in the garden. It also puts the message on the fake Slack,
// which takes reactions only to messages that it has.
func (h *harness) putMention(text string) slacktest.Message {
	h.t.Helper()
	m := h.newMessage("<@" + slacktest.BotUser + "> " + text)
	h.slack.Put(slacktest.Post{Channel: m.Channel, User: m.User, Text: m.Text, TS: m.TS})
	h.accept(m.Mention())
	return m
}

// awaitWorkingSign waits until a message has, or no longer has, the sign that the agent is
// working.
func (h *harness) awaitWorkingSign(m slacktest.Message, want bool) {
	h.t.Helper()
	for (len(h.slack.Reactions(m.Channel, m.TS)) > 0) != want {
		if !h.poll() {
			h.t.Fatalf("the working sign is shown: %v\n%s%s", !want, h.state(), h.log)
		}
	}
}

// TestFailureNoticeIsEphemeral: only the asker gets the notice, and the live preview
// disappears.
func TestFailureNoticeIsEphemeral(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: livePreview, turns: "coalesce: 0s, max_attempts: 1"})
	m := h.putMention("what now?")
	a := h.nextRequest()
	h.awaitWorkingSign(m, true)
	h.answer(a, func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"half of an answer \"}}]}\n\n"))
		_ = http.NewResponseController(w).Flush()
		h.awaitVisible(m, "a half", func(texts []string) bool { return len(texts) == 1 })
		panic(http.ErrAbortHandler)
	})
	for len(h.slack.Ephemerals()) == 0 {
		if !h.poll() {
			t.Fatalf("there is no ephemeral notice\n%s", h.log)
		}
	}
	h.awaitVisible(m, "nothing", func(texts []string) bool { return len(texts) == 0 })
	h.awaitWorkingSign(m, false)
	if told := h.slack.Ephemerals(); len(told) != 1 || told[0].User != mara || told[0].ThreadTS != "" || !strings.HasPrefix(told[0].Text, "Sorry") {
		t.Errorf("%+v", told)
	}
}

// TestDeletedQuestionRemovesPreview of the answer that had begun.
func TestDeletedQuestionRemovesPreview(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: livePreview})
	m := h.putMention("never mind?")
	a := h.nextRequest()
	h.awaitWorkingSign(m, true)
	h.answer(a, streamPieces([]string{"it is ", "of no ", "use"}, func(i int) {
		if i == 1 {
			h.awaitVisible(m, "a beginning", func(texts []string) bool { return len(texts) == 1 })
			h.accept(deleted(m))
			h.awaitHangup(a)
		}
	}))
	h.awaitVisible(m, "nothing", func(texts []string) bool { return len(texts) == 0 })
	h.awaitWorkingSign(m, false)
	if open := h.slack.OpenStreams(); len(open) > 0 {
		t.Errorf("still open: %+v", open)
	}
}

// TestLongReplyIsUploaded as a file below the beginning of the reply.
func TestLongReplyIsUploaded(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: livePreview})
	m := h.mention("all of it")
	answer := strings.Repeat("A line of many. ", 2000)
	h.answerNext(replyWith(answer))
	for len(h.slack.Uploads()) == 0 {
		if !h.poll() {
			t.Fatalf("nothing was uploaded\n%s", h.log)
		}
	}
	upload := h.slack.Uploads()[0]
	if post, _ := h.slack.Message(upload.Channel, upload.TS); string(upload.Content) != answer || post.Channel != m.Channel || post.ThreadTS != m.TS {
		t.Errorf("%d bytes in %+v", len(upload.Content), post)
	}
	h.awaitVisible(m, "the beginning", func(texts []string) bool {
		return len(texts) > 0 && strings.HasPrefix(answer, texts[0]) && len(texts[0]) > 5000
	})
}

// TestReplyMentionsOnlyUsersOfTranscript: a mention that the agent copies from its input
// works, and every other one is plain text.
func TestReplyMentionsOnlyUsersOfTranscript(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: livePreview})
	m := h.mention("ask <@U0OLIVIA|olivia> too")
	h.answerNext(replyWith("<@" + mara + "> and <@U0EVE>: <!here> <!subteam^S0ALL>"))
	want := "<@" + mara + "> and <\u200b@U0EVE>: <\u200b!here> <\u200b!subteam^S0ALL>"
	h.awaitVisible(m, "the answer", func(texts []string) bool { return slices.Equal(texts, []string{want}) })
}

// TestReplyMentionsByName: policy.mentions decides whether the name of a person of the thread is a mention, and whether tokens are. The notes tell
// the agent.
func TestReplyMentionsByName(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"names":  "<@" + mara + "> and @Ash: `@Mara` <@" + mara + ">",
		"tokens": "@mara and @Ash: `@Mara` <@" + mara + ">",
		"none":   "@mara and @Ash: `@Mara` <\u200b@" + mara + ">",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{slack: livePreview, helper: "notes: [names]", acme: "policy: {mentions: " + setting + "}"})
			h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
			m := h.mention("who is there?")
			request := h.answerNext(replyWith("@mara and @Ash: `@Mara` <@" + mara + ">"))
			h.awaitVisible(m, "the answer", func(texts []string) bool { return slices.Equal(texts, []string{want}) })
			said := slices.ContainsFunc(request.messages, func(m chatMessage) bool {
				return strings.Contains(m.Content, "To mention somebody, write @ before the name: @Mara")
			})
			if said != (setting == "names") {
				t.Errorf("the notes tell how to mention: %t", said)
			}
		})
	}
}

// TestReplySpeaksForTheBotAlone: it has no header with the name of the bot's account on the platform, and ends
// before the header of another person.
func TestReplySpeaksForTheBotAlone(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.mention("are you there?")
	h.answerNext(replyWith("[Parley]: Noted.\n[Mara (<@" + mara + ">)]: thanks"))
	if got := h.posts(1)[0].Text; got != "Noted." {
		t.Errorf("%q", got)
	}
}
