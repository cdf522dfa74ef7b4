package daemon_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
)

// TestProgramPostsToAPersonOnSlack: a post to a person opens the direct messages, also if Slack refuses that for a while,
// and an answer is lost. It is there once by its key. Who answers in the conversation, or in the thread under the post, is
// followed, and the agent sees what was said.
func TestProgramPostsToAPersonOnSlack(t *testing.T) {
	t.Parallel()
	h := open(t, withPosters(plan{slack: "timeout: 3s"}, "acme"))
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.slack.Script("conversations.open", slacktest.Fault{Status: http.StatusServiceUnavailable}, slacktest.Fault{Effect: true, Cut: true})
	to, dm := `"user":"`+mara+`"`, "D"+mara
	first := h.speak("acme", to, "**Rain** today", `,"key":"summary"`)
	if first.State != "pending" || first.ThreadID == "" {
		t.Errorf("%+v", first)
	}
	same(t, h.speak("acme", to, "**Rain** today", `,"key":"summary"`).ID, first.ID)
	sent := h.awaitPost(first.ID, "sent")
	posts := h.posts(1)
	same(t, sent.PostID, dm+"/"+posts[0].TS)
	same(t, posts[0].Channel, dm)
	if !strings.HasPrefix(sent.Link, "http") || !strings.HasSuffix(sent.Link, "/archives/"+dm+"/p"+strings.ReplaceAll(posts[0].TS, ".", "")) {
		t.Errorf("the link is %q", sent.Link)
	}

	says := func(text, more string) {
		t.Helper()
		m := h.slack.Put(slacktest.Post{Channel: dm, User: mara, Text: text})
		h.accept(inner(`{"type":"message","user":"` + mara + `","ts":"` + m.TS + `","text":"` + text + `","channel":"` + dm + `","channel_type":"im"` + more + `}`))
	}
	says("how much?", "")
	asked := h.answerNext(replyWith("Ten."))
	if strings.Count(asked.text(), "**Rain** today") != 1 {
		t.Errorf("the agent does not see the post once: %s", asked.text())
	}
	same(t, h.posts(2)[1].Channel, dm)
	says("and where?", `,"thread_ts":"`+posts[0].TS+`","parent_user_id":"`+slacktest.BotUser+`"`)
	asked = h.answerNext(replyWith("Here."))
	if !strings.Contains(asked.text(), "Rain") {
		t.Errorf("the agent does not see the post in the thread under it: %s", asked.text())
	}
	same(t, h.posts(3)[2].ThreadTS, posts[0].TS)

	second := h.speak("acme", `"thread_id":"`+first.ThreadID+`"`, "It has stopped.", "") // the thread of the person, as the 202 named it
	same(t, h.awaitPost(second.ID, "sent").ThreadID, sent.ThreadID)
	same(t, h.posts(4)[3].Channel, dm)
	says("thanks", "")
	if asked = h.answerNext(replyWith("Sure.")); !strings.Contains(asked.text(), "It has stopped.") {
		t.Errorf("the agent does not see the second post: %s", asked.text())
	}
	h.posts(5)
	h.restart()
	same(t, h.awaitPost(first.ID, "sent"), sent)
	same(t, h.speak("acme", to, "**Rain** today", `,"key":"summary"`).ID, first.ID)
	same(t, len(h.posts(5)), 5)
}

// TestAPersonWhoTakesNoPost: if the platform refuses a post for good, the post fails with the platform's reason. An id
// that is that of no person is a fault of the request.
func TestAPersonWhoTakesNoPost(t *testing.T) {
	t.Parallel()
	h := open(t, withPosters(plan{}, "acme"))
	h.slack.AddUser(slacktest.User{ID: "U0GONE", Deleted: true})
	h.slack.AddUser(slacktest.User{ID: "U0BUILD", IsBot: true})
	h.slack.AddUser(slacktest.User{ID: mara})
	for user, code := range map[string]string{"U0GONE": "user_disabled", "U0BUILD": "cannot_dm_bot", "U0NOBODY": "user_not_found", slacktest.BotUser: "cannot_dm_bot"} {
		p := h.awaitPost(h.speak("acme", `"user":"`+user+`"`, "hello", "").ID, "failed")
		if !strings.Contains(p.Error, code) || p.PostID != "" {
			t.Errorf("%s: %+v", user, p)
		}
	}
	h.slack.Script("conversations.open", slacktest.Fault{Error: "missing_scope"})
	p := h.awaitPost(h.speak("acme", `"user":"`+mara+`"`, "hello", "").ID, "failed")
	if !strings.Contains(p.Error, "im:write") {
		t.Errorf("%+v", p)
	}
	for _, to := range []string{`"user":"mara"`, `"user":"` + room + `"`, `"user":""`} {
		same(t, h.web(http.MethodPost, "acme/posts", posterToken, `{"to":{`+to+`},"content":"hello"}`).status, http.StatusBadRequest)
	}
	same(t, len(h.slack.Posts()), 0)
	client := h.operate() // an operator sends the last one again, once the app has the scope
	list, err := client.Deliveries(h.ctx, url.Values{"state": {"failed"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list.Items {
		if d.Run == p.ID {
			if _, err := client.ChangeDelivery(h.ctx, d.ID, "resend", nil); err != nil {
				t.Error(err)
			}
		}
	}
	p = h.awaitPost(p.ID, "sent")
	same(t, h.posts(1)[0].Channel, "D"+mara)
	for _, d := range list.Items {
		if shown, err := client.Delivery(h.ctx, d.ID); d.Run == p.ID && (err != nil || shown.Link != p.Link || p.Link == "") {
			t.Errorf("%v %+v", err, shown)
		}
	}
}

// TestProgramPostsToAPersonOnDiscord: a post opens the direct messages with a person. A person who takes none fails it.
func TestProgramPostsToAPersonOnDiscord(t *testing.T) {
	t.Parallel()
	const mara, shy = "700000000000000005", "700000000000000006"
	fake, err := discordtest.Start(discordtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	fake.AddUser(discordtest.User{ID: mara, Username: "Mara"})
	fake.AddUser(discordtest.User{ID: shy, Username: "Shy", NoDirect: true})
	fake.Script(discordtest.OpenDirect, discordtest.Fault{Effect: true, Cut: true})
	h := open(t, withPosters(plan{files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 0s}
`}}, "guild"))
	h.awaitState("guild", "up")
	p := h.awaitPost(h.speak("guild", `"user":"`+mara+`"`, "**Rain** today", "").ID, "sent")
	sent, err := fake.Await(h.ctx, 1)
	if err != nil || sent[0].Content != "**Rain** today" {
		t.Fatalf("%v %+v", err, sent)
	}
	same(t, p.Link, "https://discord.com/channels/@me/"+sent[0].Channel+"/"+sent[0].ID)
	fake.Say(discordtest.Message{Channel: sent[0].Channel, Author: mara, Content: "how much?"})
	if asked := h.answerNext(replyWith("Ten.")); !strings.Contains(asked.text(), "**Rain** today") {
		t.Errorf("the agent does not see the post: %s", asked.text())
	}
	if _, err := fake.Await(h.ctx, 2); err != nil {
		t.Fatal(err)
	}
	for user, code := range map[string]string{shy: "50007", discordtest.BotUser: "50007", "700000000000000007": "10013"} {
		if p := h.awaitPost(h.speak("guild", `"user":"`+user+`"`, "hello", "").ID, "failed"); !strings.Contains(p.Error, code) {
			t.Errorf("%s: %+v", user, p)
		}
	}
}

// TestProgramPostsToAPersonOnIMessage: a post of several parts to a person without a chat begins the chat once, even if the
// answer is lost. Parley hears the person's reply.
func TestProgramPostsToAPersonOnIMessage(t *testing.T) {
	t.Parallel()
	const dana, danaChat = "+15555550177", "iMessage;-;+15555550177"
	m := openIMessage(t, bluebubblestest.Options{}, "", "home")
	m.mac.Script("POST chat/new", bluebubblestest.Fault{Effect: true, Status: http.StatusInternalServerError})
	p := m.awaitPost(m.speak("home", `"user":"+1 (555) 555-0177"`, "Rain today\n\nBring a coat", "").ID, "sent")
	sent := m.sent(2)
	if len(sent) != 2 || sent[0].Chat != danaChat || sent[0].Text != "Rain today" || sent[1].Chat != danaChat || sent[1].Text != "Bring a coat" || p.PostID != sent[0].GUID {
		t.Fatalf("%+v %+v", p, sent)
	}
	m.says(danaChat, dana, "which one?")
	if sent := m.sent(3); sent[2].Chat != danaChat || sent[2].Text != "which one?" {
		t.Errorf("%+v", sent[2])
	}
	for _, to := range []string{"dana", "chat640021977"} {
		if p := m.awaitPost(m.speak("home", `"user":"`+to+`"`, "hello", "").ID, "failed"); !strings.Contains(p.Error, "telephone number") {
			t.Errorf("%+v", p)
		}
	}
}
