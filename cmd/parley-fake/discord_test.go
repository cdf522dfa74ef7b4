package main

import (
	"testing"

	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
)

func TestPrintedDiscordWorkspaceLoads(t *testing.T) {
	p := start(t, playDiscord)
	_, w := p.writeConfig("")
	if account := w.Config.(*discord.Config); account.Token.Reveal() != discordtest.Token || w.ID != "fake-discord" {
		t.Errorf("%+v", account)
	}
	p.typeLine("help")
	p.wait("  quit")
	p.quit()
}

// TestParleyWithTheFakeDiscord uses the real binary.
func TestParleyWithTheFakeDiscord(t *testing.T) {
	p := start(t, playDiscord)
	d := newDaemon(t, p, "")
	d.start()
	p.wait("the daemon begins a session")
	for _, turn := range []struct{ typed, shown string }{
		{"> hello", "direct: the bot posts [1]: hello"},
		{"#general: <@" + discordtest.BotUser + "> hi", "#general: the bot posts [2]: <@" + discordtest.BotUser + "> hi"},
		{"^ and then?", "#general: the bot posts [3]: and then?"},
		{"/ask what is up", "#general: the bot edits [0]: what is up"},
		{"drop cat", "  quit"},
		{"> a typing error drops nothing", "direct: the bot posts [4]: a typing error drops nothing"},
		{"drop cut", "the daemon resumes its session"},
		{"> still there?", "direct: the bot posts [5]: still there?"},
		{"drop forget", "the daemon begins a session"},
		{"> and now?", "direct: the bot posts [6]: and now?"},
	} {
		p.typeLine(turn.typed)
		p.wait(turn.shown)
	}
	d.stop()
	p.typeLine("> are you down?")
	d.start()
	p.wait("direct: the bot posts [7]: are you down?")
	d.stop()
	p.quit()
}
