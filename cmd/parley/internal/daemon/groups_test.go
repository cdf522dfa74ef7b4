package daemon_test

import (
	"strings"
	"testing"

	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
)

// TestAdmittedByUserGroup: with policy.allow_groups the members of a user group are admitted, and a change of the group counts as
// soon as Slack tells of it.
func TestAdmittedByUserGroup(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: "policy: {allow_users: [U0BOSS], allow_groups: [S0TEAM]}"})
	h.slack.SetGroup("S0TEAM", mara)
	h.slack.SetGroup("S0OTHER", "U0EVE")
	say := func(user, text string) {
		m := h.newMessage("<@" + slacktest.BotUser + "> " + text)
		m.User = user
		h.accept(m.Mention())
	}
	const refused = `parley_envelopes_total{disposition="ignored",kind="message",reason="user-refused",workspace="acme"}`
	answered := func(text string) {
		t.Helper()
		request := h.answerNext(replyWith("Yes."))
		if last := request.messages[len(request.messages)-1].Content; !strings.HasSuffix(last, text) {
			t.Errorf("the agent reads %q, want %q", last, text)
		}
	}
	say(mara, "a member")
	answered("a member")
	say("U0BOSS", "on the list")
	answered("on the list")
	say("U0EVE", "of another group")
	h.awaitMetric(refused, 1)
	h.slack.SetGroup("S0TEAM", "U0EVE")
	h.accept(inner(`{"type":"subteam_members_changed","subteam_id":"S0TEAM","added_users":["U0EVE"],"removed_users":["` + mara + `"]}`))
	say(mara, "no member any more")
	h.awaitMetric(refused, 2)
	say("U0EVE", "a member now")
	answered("a member now")
}

// TestAdmittedByRole: with policy.allow_roles the people with a role are admitted, by the roles of the payload, and in direct messages
// by those that Discord tells.
func TestAdmittedByRole(t *testing.T) {
	t.Parallel()
	const (
		guild, shed, hers, his = "700000000000000001", "700000000000000002", "700000000000000003", "700000000000000004"
		mara, eve, role        = "700000000000000005", "700000000000000006", "700000000000000007"
	)
	fake, err := discordtest.Start(discordtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	fake.AddGuild(discordtest.Guild{ID: guild, Roles: map[string]string{role: "crew"}, Has: map[string][]string{mara: {role}}})
	fake.AddUser(discordtest.User{ID: mara, Username: "Mara"})
	fake.AddUser(discordtest.User{ID: eve, Username: "Eve"})
	fake.SetChannel(discordtest.Channel{ID: shed, Guild: guild})
	fake.SetChannel(discordtest.Channel{ID: hers, Type: discordtest.Direct, User: mara})
	fake.SetChannel(discordtest.Channel{ID: his, Type: discordtest.Direct, User: eve})
	h := open(t, plan{files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 0s}
policy: {allow_roles: ["` + role + `"]}
`}})
	h.awaitState("guild", "up")
	for i, channel := range []string{shed, hers} {
		fake.Say(discordtest.Message{Channel: map[string]string{shed: shed, hers: his}[channel], Author: eve, Content: "<@" + discordtest.BotUser + "> may I?"})
		h.awaitMetric(`parley_envelopes_total{disposition="ignored",kind="message",reason="user-refused",workspace="guild"}`, float64(i+1))
		fake.Say(discordtest.Message{Channel: channel, Author: mara, Content: "<@" + discordtest.BotUser + "> it is me"})
		if last := h.answerNext(replyWith("Yes.")).messages; !strings.Contains(last[len(last)-1].Content, "it is me") {
			t.Errorf("in %s the agent reads %q", channel, last)
		}
	}
}
