package daemon_test

import (
	"strings"
	"testing"

	"parley/adapters/discord/discordtest"
)

// TestAPasteIsRead: Discord makes a file of a long paste. The agent reads its words.
func TestAPasteIsRead(t *testing.T) {
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
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 0s}
`}})
	h.awaitState("guild", "up")
	paste := strings.Repeat("a row of the log\n", 200)
	file := fake.AddFile(shed, discordtest.File{Name: "message.txt", MimeType: "text/plain; charset=utf-8", Content: []byte(paste)})
	fake.Say(discordtest.Message{Channel: shed, Author: mara, Content: "<@" + discordtest.BotUser + ">", Files: []discordtest.File{file}})
	asked := h.answerNext(replyWith("A log."))
	last := asked.messages[len(asked.messages)-1]
	if !strings.HasSuffix(last.Content, "\n``` message.txt\n"+paste+"```") {
		t.Errorf("the model reads %q\n%s", last.Content, h.log)
	}
}
