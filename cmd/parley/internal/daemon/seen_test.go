package daemon_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
)

// newest returns the newest message of the agent's input.
func (a *modelRequest) newest() string { return a.messages[len(a.messages)-1].Content }

// TestLinkedMessageIsSeen: the run waits for the words that Slack adds below a permalink.
func TestLinkedMessageIsSeen(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	link := "https://acme.slack.com/archives/C0KITCHEN/p1749990000000100"
	m := h.newMessage("<@" + slacktest.BotUser + "> read <" + link + ">")
	h.accept(m.Event())
	h.accept(inner(fmt.Sprintf(`{"type":"message","subtype":"message_changed","hidden":true,"channel":%q,"channel_type":"channel","ts":"%s9",
		"message":{"type":"message","user":%q,"text":%q,"ts":%q,"attachments":[{"id":1,"from_url":%q,"original_url":%q,"ts":"1749990000.000100","author_id":"U0ASH",
			"author_name":"Ash","channel_id":"C0KITCHEN","channel_team":%q,"is_msg_unfurl":true,"text":"the freezer beeps","fallback":"the freezer beeps"}]},
		"previous_message":{"type":"message","user":%q,"text":%q,"ts":%q}}`, m.Channel, m.TS, m.User, m.Text, m.TS, link, link, slacktest.Team, m.User, m.Text, m.TS)))
	asked := h.answerNext(replyWith("It is too warm."))
	if all := fmt.Sprint(asked.messages); strings.Count(all, "the freezer beeps") != 1 || !strings.Contains(asked.newest(), link) {
		t.Errorf("the agent was asked %q", asked.messages)
	}
	h.posts(1)
}

// TestFilesOfTheThreadAreSeen: a question below another person's picture and log has both, each once.
func TestFilesOfTheThreadAreSeen(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	const words = "12:00 pump 3 stops\n12:01 E4"
	h.slack.AddFile(slacktest.File{ID: "F0CAT", Name: "cat.png", MimeType: "image/png", Content: []byte(catPNG)})
	h.slack.AddFile(slacktest.File{ID: "F0LOG", Name: "pump.log", MimeType: "text/plain", Content: []byte(words)})
	share := func(thread, id, name, mime string, size int) slacktest.Message {
		m := h.newMessage("look at this")
		under := ""
		if thread != "" {
			under = fmt.Sprintf(`"thread_ts":%q,`, thread)
		}
		h.accept(inner(fmt.Sprintf(`{"type":"message","subtype":"file_share","channel_type":"channel","channel":%q,"user":%q,"text":%q,"ts":%q,"event_ts":%q,%s
			"files":[{"id":%q,"name":%q,"mimetype":%q,"size":%d}]}`, m.Channel, m.User, m.Text, m.TS, m.TS, under, id, name, mime, size)))
		return m
	}
	root := share("", "F0CAT", "cat.png", "image/png", len(catPNG))
	share(root.TS, "F0LOG", "pump.log", "text/plain", len(words))
	ask := h.newMessage("<@" + slacktest.BotUser + "> what do these show?")
	ask.ThreadTS = root.TS
	h.accept(ask.Mention())
	asked := h.answerNext(replyWith("A cat, and a pump that stops."))
	all := fmt.Sprint(asked.messages)
	if asked.images() != 1 || !strings.Contains(asked.newest(), base64.StdEncoding.EncodeToString([]byte(catPNG))) {
		t.Errorf("the picture: %q\n%s", asked.messages, h.log)
	}
	if strings.Count(all, "12:01 E4") != 1 || strings.Count(all, "(file: cat.png") != 1 || !strings.Contains(all, "(file: pump.log") {
		t.Errorf("the log and the names: %q", asked.messages)
	}
	h.posts(1)
	if w, err := h.operate().Why(h.ctx, ask.Channel+"/"+ask.TS); err != nil || !strings.Contains(fmt.Sprint(w.Steps), "with the input: cat.png (image/png)") {
		t.Errorf("%+v, %v", w.Steps, err)
	}
	again := h.newMessage("<@" + slacktest.BotUser + "> and its colour?")
	again.ThreadTS = root.TS
	h.accept(again.Mention())
	if asked := h.answerNext(replyWith("Black.")); asked.images() != 1 {
		t.Errorf("the next turn: %q", asked.messages)
	}
	h.posts(2)
}

// TestRepliedPictureIsSeen: a reply to a picture from before Parley came has that picture.
func TestRepliedPictureIsSeen(t *testing.T) {
	t.Parallel()
	const guild, shed, mara, sam = "700000000000000001", "700000000000000002", "700000000000000005", "700000000000000006"
	fake, err := discordtest.Start(discordtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	for id, name := range map[string]string{mara: "Mara", sam: "Sam"} {
		fake.AddUser(discordtest.User{ID: id, Username: name})
	}
	fake.AddGuild(discordtest.Guild{ID: guild})
	fake.SetChannel(discordtest.Channel{ID: shed, Guild: guild, Name: "shed"})
	cat := fake.AddFile(shed, discordtest.File{Name: "cat.png", MimeType: "image/png", Content: []byte(catPNG)})
	old := fake.Put(discordtest.Message{Channel: shed, Author: sam, Content: "look", Files: []discordtest.File{cat}})
	h := open(t, plan{files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 0s}
`}})
	h.awaitState("guild", "up")
	fake.Say(discordtest.Message{Channel: shed, Author: mara, ReplyTo: old.ID, Content: "<@" + discordtest.BotUser + "> what does this show?"})
	if asked := h.answerNext(replyWith("A cat.")); asked.images() != 1 || !strings.Contains(fmt.Sprint(asked.messages), "look (file: cat.png") {
		t.Errorf("the agent was asked %q\n%s", asked.messages, h.log)
	}
}

// TestTelephonesAreSeen: a photo of an iPhone reaches the model as a JPEG, a voice note as its words, and a reply to a bubble from before
// Parley came with the words of that bubble.
func TestTelephonesAreSeen(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{PrivateAPI: true}, "channels: [{id: \""+nora+"\", agent: helper}]\n")
	const photo = "ftypheic a gauge"
	m.mac.AddFile("at_1", []byte(photo))
	m.mac.Say(bluebubblestest.Message{Chat: noraChat, From: nora, Text: "what does it show?",
		Attachments: []bluebubblestest.Attachment{{GUID: "at_1", Name: "IMG_0012.HEIC", MimeType: "image/heic", Size: len(photo)}}})
	asked := m.answerNext(replyWith("9 bar."))
	if want := "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString([]byte("\xff\xd8\xff\xe0"+photo)); !strings.Contains(asked.newest(), want) {
		t.Errorf("the photo: %q\n%s", asked.messages, m.log)
	}
	m.sent(1)
	m.mac.AddFile("at_2", []byte("caff"))
	m.mac.Say(bluebubblestest.Message{Chat: noraChat, From: nora, Spoken: "close the valve",
		Attachments: []bluebubblestest.Attachment{{GUID: "at_2", Name: "Audio Message.caf", MimeType: "audio/x-caf", Size: 4}}})
	if asked := m.answerNext(replyWith("It is closed.")); !strings.Contains(asked.newest(), "close the valve") {
		t.Errorf("the voice note: %q\n%s", asked.messages, m.log)
	}
	m.sent(2)
	old := m.mac.Put(bluebubblestest.Message{Chat: noraChat, From: nora, Text: "the pump in the shed hums", CreatedAt: time.Now().AddDate(0, -2, 0)})
	m.mac.Say(bluebubblestest.Message{Chat: noraChat, From: nora, Text: "and the older one?", ReplyTo: old.GUID})
	if asked := m.answerNext(replyWith("It hums.")); strings.Count(fmt.Sprint(asked.messages), "the pump in the shed hums") != 1 {
		t.Errorf("the old bubble: %q\n%s", asked.messages, m.log)
	}
	m.sent(3)
}

// TestPlaceOnSlack: the agent reads the names of the team and of the channel with its topic.
func TestPlaceOnSlack(t *testing.T) {
	t.Parallel()
	h := open(t, plan{helper: "notes: [place]"})
	h.slack.SetChannel(slacktest.Channel{ID: room, Name: "garden", Topic: "Ask &lt;first&gt;\n- Now: never"})
	h.mention("where are we?")
	same(t, h.answerNext(replyWith("Here.")).messages[0].Content,
		"<!-- NOTES_START -->\n- Workspace: Test\n- Channel: garden\n- Topic of the channel: Ask ‹first› - Now: never\n<!-- NOTES_END -->")
	h.posts(1)
}
