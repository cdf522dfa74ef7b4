package daemon_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
)

const refusedAnswer = "Sorry, the platform did not accept my answer."

// paragraphs returns an answer with numbered paragraphs, each a word that no other one has.
func paragraphs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "par%d. %s\n\n", i, strings.Repeat("water the beds ", 6))
	}
	return b.String()
}

// inOrder checks that texts have each paragraph once, in order.
func inOrder(t *testing.T, all string, n int) {
	t.Helper()
	at := 0
	for i := range n {
		word := fmt.Sprintf("par%d.", i)
		found := strings.Index(all[at:], word)
		if found < 0 || strings.Count(all, word) != 1 {
			t.Fatalf("%s is there %d times, or not in its place", word, strings.Count(all, word))
		}
		at += found
	}
}

// pacedPosts waits for a number of posts, and returns all posts. The workspace's pace goes by the harness's clock, which it advances
// meanwhile.
func (h *harness) pacedPosts(n int) []slacktest.Post {
	h.t.Helper()
	for len(h.slack.Posts()) < n && h.poll() {
		h.clock.advance(time.Second)
	}
	return h.posts(n)
}

// pacedTexts is pacedPosts for posts that contain texts.
func (h *harness) pacedTexts(texts ...string) []slacktest.Post {
	h.t.Helper()
	for n := 1; ; n++ {
		posts := h.pacedPosts(n)
		isMissing := func(text string) bool {
			return !slices.ContainsFunc(posts, func(p slacktest.Post) bool { return strings.Contains(p.Markdown, text) })
		}
		if !slices.ContainsFunc(texts, isMissing) {
			return posts
		}
	}
}

// TestARefusedAnswerIsTold: an ephemeral message on Slack tells the asker alone that the answer was refused. If Slack refuses that too, a
// direct message tells it. Each comes once, also after a restart.
func TestARefusedAnswerIsTold(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.slack.Script("chat.postMessage", slacktest.Fault{Error: "restricted_action"})
	h.mention("what now?")
	h.answerNext(replyWith("No."))
	for len(h.slack.Ephemerals()) == 0 && h.poll() {
		h.clock.advance(time.Second)
	}
	h.restart()
	told := h.slack.Ephemerals()
	if len(told) != 1 || told[0].Text != refusedAnswer || told[0].User != mara {
		t.Fatalf("%+v\n%s", told, h.log)
	}
	h.slack.Script("chat.postMessage", slacktest.Fault{Error: "restricted_action"})
	h.slack.Script("chat.postEphemeral", slacktest.Fault{Error: "restricted_action"})
	h.mention("and now?")
	h.answerNext(replyWith("No."))
	posts := h.pacedPosts(1)
	if len(posts) != 1 || posts[0].Channel == room || !strings.Contains(posts[0].Text+posts[0].Markdown, "I could not post my answer to") {
		t.Errorf("%+v", posts)
	}
	h.mention("still there?")
	h.answerNext(replyWith("Yes."))
	if posts := h.pacedPosts(2); len(posts) != 2 || posts[1].Text != "Yes." || len(h.slack.Ephemerals()) != 1 {
		t.Errorf("%+v", posts)
	}
}

// TestATooLongPostIsHalved: Slack counts the characters of a post in a way of its own.
func TestATooLongPostIsHalved(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.Script("chat.postMessage", slacktest.Fault{Error: "msg_too_long"})
	h.mention("tell me everything")
	h.answerNext(replyWith(paragraphs(40)))
	var all string
	for _, p := range h.pacedTexts("par39.") {
		all += p.Markdown
	}
	inOrder(t, all, 40)
	if told := h.slack.Ephemerals(); len(told) != 0 {
		t.Errorf("%+v", told)
	}
}

// TestARefusedFileBecomesPosts: the rest of a long answer goes out as posts, in order, also after a restart, and delays no answer in another thread. A
// refused file of an agent is named.
func TestARefusedFileBecomesPosts(t *testing.T) {
	t.Parallel()
	h := open(t, plan{slack: "file_over: 20000"})
	h.slack.Script("files.getUploadURLExternal", slacktest.Fault{Error: "missing_scope"})
	h.mention("tell me everything")
	const n = 400
	h.answerNext(replyWith(paragraphs(n)))
	h.pacedPosts(2)
	h.restart()
	h.mention("and then?")
	h.answerNext(replyWith("Nothing."))
	posts := h.pacedTexts("Nothing.", fmt.Sprintf("par%d.", n-1))
	var all string
	for _, p := range posts {
		all += p.Markdown + "\n"
	}
	inOrder(t, all, n)
	if files := h.slack.Uploads(); len(files) != 0 {
		t.Errorf("%+v", files)
	}
}

// TestARefusalIsToldOnDiscord: the notice comes in the thread of the answer.
func TestARefusalIsToldOnDiscord(t *testing.T) {
	t.Parallel()
	const guild, shed, mara = "700000000000000001", "700000000000000002", "700000000000000005"
	fake, err := discordtest.Start(discordtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	fake.AddGuild(discordtest.Guild{ID: guild})
	fake.AddUser(discordtest.User{ID: mara, Username: "Mara"})
	fake.SetChannel(discordtest.Channel{ID: shed, Guild: guild})
	h := open(t, plan{files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false, file_over: 4000}
turns: {coalesce: 0s}
`}})
	h.awaitState("guild", "up")
	ask := func(text string) {
		fake.Say(discordtest.Message{Channel: shed, Author: mara, Content: "<@" + discordtest.BotUser + "> " + text})
	}
	await := func(n int) []discordtest.Message {
		t.Helper()
		posts, err := fake.Await(h.ctx, n)
		if err != nil {
			t.Fatalf("%v\n%s", err, h.log)
		}
		return posts
	}
	fake.Script(discordtest.Post, discordtest.Fault{Status: http.StatusBadRequest, Code: 50035})
	ask("what now?")
	h.answerNext(replyWith("No."))
	if posts := await(1); len(posts) != 1 || posts[0].Content != refusedAnswer {
		t.Errorf("%+v", posts)
	}
	fake.Script(discordtest.Post, discordtest.Fault{}, discordtest.Fault{Status: http.StatusForbidden, Code: 50013})
	ask("tell me everything")
	const n = 60
	h.answerNext(replyWith(paragraphs(n)))
	await(3)
	h.restart()
	ask("and then?")
	h.answerNext(replyWith("Nothing."))
	posts := await(3)
	for posts[len(posts)-1].Content != "Nothing." {
		posts = await(len(posts) + 1)
	}
	var all string
	for _, p := range posts {
		all += p.Content + "\n"
	}
	inOrder(t, all, n)
}

// TestARefusalIsToldOnIMessage: the notice comes in the thread of the answer.
func TestARefusalIsToldOnIMessage(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{PrivateAPI: true}, "")
	m.mac.Script("POST message/text", bluebubblestest.Fault{Status: http.StatusBadRequest})
	m.says(noraChat, nora, "ok")
	if sent := m.sent(1); len(sent) != 1 || sent[0].Text != refusedAnswer {
		t.Errorf("%+v", sent)
	}
}
