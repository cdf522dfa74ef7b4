package daemon_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/discord/discordtest"
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
