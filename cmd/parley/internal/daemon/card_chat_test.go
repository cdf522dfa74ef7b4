package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/player"
	"parley/config"
)

// offered is the answer of the agent of carded: a text and a card.
const offered = `{"content":"Here it is.","uiSchema":{"version":"2.0","locale":"en","theme":"default","status":"success","root":{"type":"stack","children":[
	{"type":"text","role":"title","content":"Room 7 <!channel>"},{"type":"text","content":"Free today"},{"type":"image","url":"https://img.example/a.png","alt":"The room"},
	{"type":"image","url":"https://evil.example/b.png","alt":"A pixel"},
	{"type":"button","label":"Book it","action":{"id":"book","value":{"room":7}}},{"type":"button","label":"Pay","action":"pay","approval":true}]}}}`

// carded is a daemon whose agent answers each message with a card.
type carded struct {
	*harness
	asked chan askedMessage
	n     int
}

// askedMessage is the last message of a request to the agent.
type askedMessage struct {
	Content  string
	Metadata struct {
		SenderID string          `json:"sender_id"`
		Action   json.RawMessage `json:"action"`
	}
}

func openCarded(t *testing.T, fake slacktest.Options, files map[string]string) *carded {
	t.Helper()
	c := &carded{asked: make(chan askedMessage, 16)}
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Message askedMessage }
		if !takesInput(t, w, r, &body) {
			return
		}
		c.asked <- body.Message
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, offered)
	}))
	t.Cleanup(agent.Close)
	if files == nil {
		files = map[string]string{}
	}
	files["parley.yaml"] = `
listen: 127.0.0.1:0
shutdown: 30s
agents:
  - {id: helper, kind: webhook, url: "` + agent.URL + `", secret: ` + laterSecret + `, image_hosts: [IMG.example], approvers: [U0OLGA]}
  - {id: echo, kind: echo}
`
	c.harness = open(t, plan{fake: fake, files: files})
	return c
}

// press presses a button of a post in Slack, and repeats the call as Slack does after a lost acknowledgement.
func (c *carded) press(user, root string, post slacktest.Post, label string, times int) {
	c.t.Helper()
	var blocks []struct {
		Elements []json.RawMessage `json:"elements"`
	}
	if err := json.Unmarshal(post.Blocks, &blocks); err != nil {
		c.t.Fatal(err)
	}
	for _, b := range blocks {
		for _, e := range b.Elements {
			if !strings.Contains(string(e), `"`+label+`"`) {
				continue
			}
			c.n++
			for range times {
				result, err := c.slack.PushRaw(slacktest.Interactive, fmt.Appendf(nil, `{"type":"block_actions","api_app_id":%q,"team":{"id":%q},"user":{"id":%q},"trigger_id":"1.2.%d",
					"channel":{"id":%q,"name":"garden"},"container":{"type":"message","message_ts":%q,"channel_id":%q,"thread_ts":%q},
					"message":{"bot_id":%q,"text":"x","ts":%q,"thread_ts":%q},"actions":[%s]}`,
					slacktest.App, slacktest.Team, user, c.n, room, post.TS, room, root, slacktest.BotID, post.TS, root, e)).Wait(c.ctx)
				if err != nil || result.State != slacktest.Acked {
					c.t.Fatalf("%+v, %v\n%s", result, err, c.log)
				}
			}
			return
		}
	}
	c.t.Fatalf("no button %s in %s", label, post.Blocks)
}

// TestCardsInSlack: the answer's card is a post below it. A press reaches the agent once, over repetitions and a restart, and tells who
// pressed what. Only an approver may press a button that asks for one, and a button that is gone answers its presser alone.
func TestCardsInSlack(t *testing.T) {
	t.Parallel()
	c := openCarded(t, slacktest.Options{}, nil)
	c.slack.SetHook(slacktest.Hook{URL: c.url + "/hooks/slack/acme", Secret: signingSecret})
	m := c.mention("a room?")
	<-c.asked
	posts := c.posts(2)
	text, card := posts[0], posts[1]
	if text.Text != "Here it is." || card.ThreadTS != m.TS || !strings.Contains(string(card.Blocks), `"header"`) || !strings.Contains(string(card.Blocks), `"image_url":"https://img.example/a.png"`) ||
		strings.Contains(string(card.Blocks), `"image_url":"https://evil.example`) || !strings.Contains(card.Text, "Room 7 &lt;!channel&gt;") {
		t.Errorf("%+v\n%s", posts, card.Blocks)
	}
	c.restart()
	c.slack.SetHook(slacktest.Hook{URL: c.url + "/hooks/slack/acme", Secret: signingSecret})
	c.press("U0TOM", m.TS, card, "Pay", 1)
	if told := c.private(1); told.User != "U0TOM" || !strings.Contains(told.Text, "approvers") {
		t.Errorf("%+v", told)
	}
	c.press("U0TOM", m.TS, card, "Book it", 3)
	pressed := <-c.asked
	if pressed.Content != "Book it" || pressed.Metadata.SenderID != "slack:U0TOM" || string(pressed.Metadata.Action) != `{"id":"book","value":{"room":7}}` {
		t.Errorf("%+v %s", pressed, pressed.Metadata.Action)
	}
	c.posts(4)
	c.press("U0OLGA", m.TS, card, "Pay", 2)
	if pressed = <-c.asked; string(pressed.Metadata.Action) != `{"id":"pay","value":null}` || pressed.Metadata.SenderID != "slack:U0OLGA" {
		t.Errorf("%+v %s", pressed, pressed.Metadata.Action)
	}
	c.posts(6)
	gone := card
	gone.Blocks = []byte(strings.ReplaceAll(string(card.Blocks), "parley-card-", "parley-card-0"))
	c.press("U0TOM", m.TS, gone, "Book it", 1)
	if told := c.private(2); told.User != "U0TOM" || !strings.Contains(told.Text, "nothing any more") {
		t.Errorf("%+v", told)
	}
	if len(c.asked) != 0 {
		t.Errorf("the agent was asked again: %+v", <-c.asked)
	}
}

// TestCardsInDiscord: the card is an embed with buttons. A press is acknowledged, and one that does nothing is answered to its
// presser alone.
func TestCardsInDiscord(t *testing.T) {
	t.Parallel()
	const guild, shed, mara, tom = "700000000000000001", "700000000000000002", "700000000000000005", "700000000000000006"
	fake, err := discordtest.Start(discordtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	fake.AddGuild(discordtest.Guild{ID: guild})
	fake.AddUser(discordtest.User{ID: mara, Username: "Mara"})
	fake.AddUser(discordtest.User{ID: tom, Username: "Tom"})
	fake.SetChannel(discordtest.Channel{ID: shed, Guild: guild})
	c := openCarded(t, slacktest.Options{}, map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 0s}
`})
	c.awaitState("guild", "up")
	fake.Say(discordtest.Message{Channel: shed, Author: mara, Content: "<@" + discordtest.BotUser + "> a room?"})
	<-c.asked
	posts, err := fake.Await(c.ctx, 2)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.log)
	}
	card := posts[1]
	if card.Content != `**Room 7 \<\!channel\>**` || !strings.Contains(string(card.Embeds), `"color":5763719`) || !strings.Contains(string(card.Embeds), "A pixel: https://evil.example/b.png") {
		t.Errorf("%+v %s", card, card.Embeds)
	}
	var rows []map[string]any
	if err := json.Unmarshal(card.Components, &rows); err != nil {
		t.Fatal(err)
	}
	press := func(user string, button int, change string) discordtest.Interaction {
		id := rows[0]["components"].([]any)[button].(map[string]any)["custom_id"].(string) + change
		data, on := map[string]any{"custom_id": id, "component_type": 2}, map[string]any{"message": map[string]any{"id": card.ID, "components": rows}}
		i, _ := fake.Ask(shed, user, 3, data, on)
		on["id"], on["token"] = i.ID, i.Token // as after a resume
		fake.Ask(shed, user, 3, data, on)
		i, err := fake.AwaitAsked(c.ctx, i.Token, func(i discordtest.Interaction) bool { return i.Type != 0 })
		if err != nil {
			t.Fatalf("%v\n%s", err, c.log)
		}
		return i
	}
	if i := press(tom, 0, ""); i.Type != 6 {
		t.Errorf("%+v", i)
	}
	if pressed := <-c.asked; pressed.Content != "Book it" || pressed.Metadata.SenderID != "discord:"+tom || string(pressed.Metadata.Action) != `{"id":"book","value":{"room":7}}` {
		t.Errorf("%+v %s", pressed, pressed.Metadata.Action)
	}
	for button, change := range map[int]string{1: "", 0: "7"} { // for an approver, and none
		if i := press(tom, button, change); i.Type != 4 || i.Flags&64 == 0 {
			t.Errorf("%+v", i)
		}
	}
	if len(c.asked) != 0 {
		t.Errorf("the agent was asked again: %+v", <-c.asked)
	}
}

// TestCardsInIMessage: the card is lines of text.
func TestCardsInIMessage(t *testing.T) {
	t.Parallel()
	mac, err := bluebubblestest.Start(bluebubblestest.Options{Password: macPassword})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mac.Close() })
	mac.AddContact(bluebubblestest.Contact{Address: nora, Name: "Nora"})
	c := openCarded(t, slacktest.Options{}, map[string]string{"workspaces/home.yaml": `
id: home
platform: bluebubbles
agent: helper
bluebubbles: {url: "` + mac.URL() + `", password: "` + macPassword + `", webhook_secret: ` + hookCanary + `, post_rate: 0, timeout: 3s, poll: 1h, wake: [parley]}
turns: {coalesce: 0s}
`})
	for len(mac.Registered()) == 0 || !strings.Contains(c.get("/readyz").body, `"home":{"state":"up"`) {
		if !c.poll() {
			t.Fatalf("the workspace is not up\n%s", c.log)
		}
	}
	mac.Say(bluebubblestest.Message{Chat: noraChat, From: nora, Text: "a room?"})
	sent, err := mac.Await(c.ctx, 2)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.log)
	}
	if got := sent[1].Text; got != "Room 7 <!channel>\nFree today\nThe room: https://img.example/a.png\nA pixel: https://evil.example/b.png\n[Book it]  [Pay]" {
		t.Errorf("%q", got)
	}
}

// TestReplayPrintsCards: the text of a reply has its card in plain text.
func TestReplayPrintsCards(t *testing.T) {
	t.Parallel()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, offered)
	}))
	t.Cleanup(agent.Close)
	p := plan{dir: t.TempDir(), files: map[string]string{"parley.yaml": "listen: 127.0.0.1:0\nagents:\n  - {id: helper, kind: webhook, url: \"" + agent.URL + "\", secret: " + laterSecret + "}\n"}}
	p.write(t, strings.NewReplacer("AGENT", agent.URL, "SLACK", "http://127.0.0.1:1/"))
	path := filepath.Join(p.dir, "example.jsonl")
	write(t, path, strings.TrimPrefix(example, "\n"))
	c, err := config.Load(filepath.Join(p.dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := replay(t, player.Recording{Config: c, Files: []string{path}, JSON: true})
	const want = `"text":"Here it is.\n\nRoom 7 <!channel>\nFree today\nThe room: https://img.example/a.png\nA pixel: https://evil.example/b.png\n[Book it]  [Pay]"`
	if !strings.Contains(lines, want) {
		t.Errorf("%s\nlacks %s", lines, want)
	}
}
