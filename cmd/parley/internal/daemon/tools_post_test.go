package daemon_test

import (
	"strings"
	"testing"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/slack/slacktest"
)

// withDesk is withPosters, whose poster also reads acme.
func withDesk(p plan) plan {
	p = withPosters(p, "acme")
	p.files["workspaces/ours.yaml"] = strings.Replace(p.files["workspaces/ours.yaml"], "posts: [acme]", "posts: [acme], read: [acme]", 1)
	return p
}

// desk adds the files of withDesk to a plan of everyStore.
func desk(p *plan) { *p = withDesk(*p) }

// TestToolPosts: a post by a tool is the post of the HTTP API, once by its key, also after a restart.
func TestToolPosts(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		const arguments = `{"workspace":"acme","channel":"` + room + `","content":"**Rain** today","key":"k"}`
		first := h.callTool(posterToken, "post_message", arguments)
		if first.fault != "" || first.ID == "" {
			t.Fatalf("%+v", first)
		}
		sent := h.awaitPost(first.ID, "sent")
		h.restart()
		again := h.callTool(posterToken, "post_message", arguments)
		same(t, again.postState, sent)
		same(t, h.speak("acme", `"channel":"`+room+`"`, "**Rain** today", `,"key":"k"`).ID, first.ID)
		more := h.callTool(posterToken, "post_message", `{"workspace":"acme","thread_id":"`+strings.ToUpper(sent.ThreadID)+`","content":"It has stopped."}`)
		h.awaitPost(more.ID, "sent")
		if posts := h.posts(2); len(posts) != 2 || posts[1].ThreadTS != posts[0].TS {
			t.Errorf("%+v", posts)
		}
	}, desk)
}

// TestToolReacts: a reaction arrives once, also if it is repeated, at a person's message and at an answer of ours, and one that
// Slack has refused is tried again.
func TestToolReacts(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		h.echoes()
		m := h.mention("are we on?")
		h.slack.Put(slacktest.Post{Channel: room, User: mara, Text: m.Text, TS: m.TS})
		answer := h.posts(1)[0]
		list := h.callTool(posterToken, "list_threads", `{"workspace":"acme"}`)
		read := h.callTool(posterToken, "read_thread", `{"workspace":"acme","thread_id":"`+list.Threads[0].ThreadID+`"}`).Messages
		react := func(id, emoji string) toolResult {
			return h.callTool(posterToken, "react", `{"workspace":"acme","message_id":"`+id+`","emoji":"`+emoji+`"}`)
		}
		awaitTool(h, func() bool { return react(read[0].ID, "👍").State == "sent" })
		same(t, react(read[0].ID, ":thumbsup:").State, "sent")
		same(t, h.slack.Reactions(room, m.TS), []slacktest.Reaction{{Name: "+1", Users: []string{slacktest.BotUser}}})
		awaitTool(h, func() bool { return react(read[1].ID, "tada").State == "sent" })
		same(t, h.slack.Reactions(room, answer.TS), []slacktest.Reaction{{Name: "tada", Users: []string{slacktest.BotUser}}})

		h.slack.Script("reactions.add", slacktest.Fault{Error: "too_many_reactions"})
		awaitTool(h, func() bool { return react(read[0].ID, "eyes").State == "sent" })
		same(t, len(h.slack.Reactions(room, m.TS)), 2)
	}, desk)
}

// TestToolReactsOnIMessage: an emoji becomes a tapback. Messages has no other ones. Our tapback is no message of the account's owner.
func TestToolReactsOnIMessage(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{PrivateAPI: true}, "policy: {reactions: true}\n", "home], read: [home")
	m.says(noraChat, nora, "hello")
	m.sent(1)
	list := m.callTool(posterToken, "list_threads", `{"workspace":"home"}`)
	read := func() []toolMessage {
		return m.callTool(posterToken, "read_thread", `{"workspace":"home","thread_id":"`+list.Threads[0].ThreadID+`"}`).Messages
	}
	id := read()[0].ID
	react := func(emoji string) toolResult {
		return m.callTool(posterToken, "react", `{"workspace":"home","message_id":"`+id+`","emoji":"`+emoji+`"}`)
	}
	same(t, react("🎉").fault, "emoji: is no reaction of this platform: give one emoji, such as 👍, or its name, such as +1")
	awaitTool(m.harness, func() bool { return react("❤️").State == "sent" })
	tapbacks := 0
	for _, said := range m.mac.Messages() {
		if said.Tapback == "love" {
			tapbacks++
		}
	}
	same(t, tapbacks, 1)
	m.says(noraChat, nora, "thanks")
	m.sent(2)
	same(t, len(read()), 4)
}

// TestToolReactsToTheAnswerOfASchedule, which begins a thread at the top of its channel.
func TestToolReactsToTheAnswerOfASchedule(t *testing.T) {
	t.Parallel()
	h := open(t, withDesk(plan{acme: twoSchedules})).echoes()
	h.changeSchedule("morning", "run")
	answer := h.posts(1)[0]
	h.awaitResult("morning", "posted")
	list := h.callTool(posterToken, "list_threads", `{"workspace":"acme"}`)
	read := h.callTool(posterToken, "read_thread", `{"workspace":"acme","thread_id":"`+list.Threads[0].ThreadID+`"}`).Messages
	awaitTool(h, func() bool {
		got := h.callTool(posterToken, "react", `{"workspace":"acme","message_id":"`+read[len(read)-1].ID+`","emoji":"tada"}`)
		if got.fault != "" {
			t.Fatal(got.fault)
		}
		return got.State == "sent"
	})
	same(t, h.slack.Reactions(room, answer.TS), []slacktest.Reaction{{Name: "tada", Users: []string{slacktest.BotUser}}})
}

// TestDoorsOfActingTools: if the HTTP API refuses an action to a token, so does the tool.
func TestDoorsOfActingTools(t *testing.T) {
	t.Parallel()
	h := open(t, withDesk(plan{})).echoes()
	h.mention("hello")
	h.posts(1)
	list := h.callTool(posterToken, "list_threads", `{"workspace":"acme"}`)
	id := h.callTool(posterToken, "read_thread", `{"workspace":"acme","thread_id":"`+list.Threads[0].ThreadID+`"}`).Messages[0].ID
	post := func(place string) string { return `{"workspace":"acme","content":"hello",` + place + `}` }
	react := func(id, emoji string) string {
		return `{"workspace":"acme","message_id":"` + id + `","emoji":"` + emoji + `"}`
	}
	const denied = "this token may not post there"
	for _, c := range []struct{ token, tool, arguments, want string }{
		{ownToken, "post_message", post(`"channel":"` + room + `"`), noPost},
		{ownToken, "react", react(id, "eyes"), noPost},
		{posterToken, "post_message", `{"workspace":"other","channel":"` + room + `","content":"hello"}`, noPost},
		{posterToken, "post_message", `{"channel":"` + room + `","content":"hello"}`, noPost}, // its own workspace
		{roomToken, "post_message", post(`"channel":"C0OTHER"`), denied},
		{roomToken, "post_message", post(`"user":"` + mara + `"`), denied},
		{posterToken, "post_message", post(`"thread_id":"` + thread + `"`), noThread},
		{posterToken, "post_message", post(`"channel":"garden"`), "to.channel: must be the platform's id of a channel"},
		{posterToken, "post_message", `{"workspace":"acme","channel":"` + room + `","content":" "}`, "content: is required"},
		{posterToken, "react", react("x", "eyes"), "message_id: must be a UUID"},
		{posterToken, "react", react(thread, "eyes"), "the workspace has no such message"},
		{posterToken, "react", react(id, "two words"), "emoji: is no reaction of this platform"},
	} {
		if got := h.callTool(c.token, c.tool, c.arguments); !strings.Contains(got.fault, c.want) {
			t.Errorf("%s %s: %+v, want the fault %q", c.tool, c.arguments, got, c.want)
		}
	}
	same(t, len(h.slack.Posts()), 1)
}
