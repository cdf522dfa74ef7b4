package daemon_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
)

// awaitText waits until a text is shown.
func (h *harness) awaitText(want string, shown func() []string) {
	h.t.Helper()
	for {
		texts := shown()
		for _, text := range texts {
			if text == want {
				return
			}
		}
		if !h.poll() {
			h.t.Fatalf("shown is %q, want %q\n%s", texts, want, h.log)
		}
	}
}

// slackTexts returns the texts of the posts on Slack.
func (h *harness) slackTexts() (texts []string) {
	for _, p := range h.slack.Posts() {
		texts = append(texts, p.Shown())
	}
	return texts
}

// TestChildrenGoOnInTheStatePost checks that one post on Slack tells how far a workstream is, also after the run has ended that launched
// it.
func TestChildrenGoOnInTheStatePost(t *testing.T) {
	t.Parallel()
	h := openLeadShowing(t, plan{}, 2, "[answer, workstream]")
	question := h.mention("who is right?")
	asked := <-h.inputs
	h.launch(asked.RunID, `{"task":"Look it up.","agent":"other","name":"the books"}`)
	child := <-h.inputs
	h.awaitText("Workstreams\n⏳ the books: planning", h.slackTexts)
	h.reply(asked.RunID, "I have asked.")
	h.awaitText("I have asked.", h.slackTexts)

	update := h.request(http.MethodPost, "/runs/"+child.RunID+"/updates", otherSecret, "application/json", `{"t":3,"m":"page 7","d":{"tool":"search","tool_event":"started"}}`)
	if update.status != http.StatusAccepted {
		t.Fatalf("%d %s", update.status, update.body)
	}
	h.awaitText("Workstreams\n⏳ the books: executing search", h.slackTexts)
	if got := h.request(http.MethodPost, "/api/v1/runs/"+child.RunID+"/reply", otherSecret, "application/json", `{"content":"Mara is."}`); got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	h.awaitText("Workstreams\n✅ the books", h.slackTexts)
	told := <-h.inputs
	h.reply(told.RunID, "Mara is.")
	h.awaitText("Mara is.", h.slackTexts)
	if posts := h.slack.Posts(); len(posts) != 3 || posts[0].Edits < 2 || posts[0].ThreadTS != question.TS {
		t.Errorf("%+v", posts)
	}
}

// TestAStatePostEndsInAnOpenedChannel: a run ends while its channel is archived. Its state post shows that once the channel is open again.
func TestAStatePostEndsInAnOpenedChannel(t *testing.T) {
	t.Parallel()
	fake, made := calls("chat.update")
	h := openLeadShowing(t, plan{fake: fake}, 2, "[answer, plan]")
	h.slack.AddChannel(room, "garden")
	h.mention("tidy up")
	asked := <-h.inputs
	h.call(http.MethodPost, "/runs/"+asked.RunID+"/updates", `{"t":2,"m":"Tidy up","d":{"plan":[{"title":"sweep","status":"running"}]}}`, http.StatusAccepted)
	h.awaitText("Tidy up (0 of 1 done)\n⏳ sweep (running)", h.slackTexts)
	h.slack.SetChannel(slacktest.Channel{ID: room, Name: "garden", Archived: true})
	h.reply(asked.RunID, "Done.")
	for len(made) < 2 && h.poll() { // the first one was refused when the second one begins
		h.clock.advance(10 * time.Second)
	}
	h.slack.AddChannel(room, "garden")
	for h.slackTexts()[0] != "Tidy up (0 of 1 done)\n⏹️ sweep (unfinished)" {
		if h.clock.advance(10 * time.Second); !h.poll() {
			t.Fatalf("shown is %q\n%s", h.slackTexts(), h.log)
		}
	}
}

// TestAPlanOnDiscord checks that a plan and its progress are one post, whose tasks get a truthful state as the run is stopped, and whose
// mentions reach nobody.
func TestAPlanOnDiscord(t *testing.T) {
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
	h := openLeadShowing(t, plan{files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, preview_every: 50ms, working: off, commands: false}
turns: {coalesce: 0s, mode: queue}
`}}, 2, "[answer, plan, batch, warning]")
	h.awaitState("guild", "up")
	fake.Say(discordtest.Message{Channel: shed, Author: mara, Content: "<@" + discordtest.BotUser + "> tidy up"})
	asked := <-h.inputs
	texts := func() (list []string) {
		for _, p := range fake.Posts("") {
			var embeds []struct{ Description string }
			if text := p.Content; json.Unmarshal(p.Embeds, &embeds) == nil && len(embeds) == 1 {
				list = append(list, text+"\n"+embeds[0].Description)
			}
		}
		return list
	}
	says := func(body string) { h.call(http.MethodPost, "/runs/"+asked.RunID+"/updates", body, http.StatusAccepted) }
	says(`{"t":2,"m":"Tidy up","d":{"plan":[{"title":"ask <@` + mara + `> and @everyone","status":"running"},{"title":"sweep","status":"pending"}]}}`)
	hidden := `ask \<\@` + mara + `\> and \@everyone`
	h.awaitText("**Tidy up (0 of 2 done)**\n⏳ "+hidden+" (running)\n▫️ sweep", texts)
	says(`[{"t":13,"m":"shelves","d":{"completed":2,"total":4}},{"t":5,"m":"it is dusty"}]`)
	h.awaitText("**Tidy up (0 of 2 done)**\n⏳ "+hidden+" (running)\n▫️ sweep\nshelves: ▰▰▰▰▰▱▱▱▱▱ 50% (2 of 4)\n• ⚠️ it is dusty", texts)
	says(`{"t":6,"m":"broken"}`)
	h.awaitText("**Tidy up (0 of 2 done)**\n❌ "+hidden+" (failed)\n▫️ sweep\nshelves: ▰▰▰▰▰▱▱▱▱▱ 50% (2 of 4)\n• ⚠️ it is dusty\n-# The run failed.", texts)
	for _, p := range fake.Posts("") {
		if len(p.Mentions) > 0 {
			t.Errorf("%q mentions %q", p.Content, p.Mentions)
		}
	}
	if n := strings.Count(strings.Join(texts(), "\n"), "Tidy up"); n != 1 {
		t.Errorf("%d posts of the plan: %q", n, texts())
	}
}
