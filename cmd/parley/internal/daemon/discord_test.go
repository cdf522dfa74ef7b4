package daemon_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/config"
	"parley/ingest/event"
)

// TestThreadHasTheSettingsOfItsChannel checks that the settings of a channel apply in its threads,
// except in one with settings of its own.
func TestThreadHasTheSettingsOfItsChannel(t *testing.T) {
	t.Parallel()
	const (
		guild, shed     = "700000000000000001", "700000000000000002"
		thread, another = "700000000000000003", "700000000000000004"
		mara            = "700000000000000005"
	)
	fake, err := discordtest.Start(discordtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	fake.AddGuild(discordtest.Guild{ID: guild})
	fake.AddUser(discordtest.User{ID: mara, Username: "Mara"})
	fake.SetChannel(discordtest.Channel{ID: shed, Guild: guild})
	fake.SetChannel(discordtest.Channel{ID: thread, Guild: guild, Type: discordtest.PublicThread, Parent: shed})
	fake.SetChannel(discordtest.Channel{ID: another, Guild: guild, Type: discordtest.PublicThread, Parent: shed})
	fake.Say(discordtest.Message{Channel: thread, Author: mara, Content: "a table?"})
	h := open(t, plan{files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 0s, mode: queue}
policy: {passive_memory: false}
channels:
  - {id: "` + shed + `", policy: {passive_memory: true}, turns: {mode: interrupt}}
  - {id: "` + another + `", turns: {mode: queue}}
`}})
	h.awaitState("guild", "up")
	ask := func(channel, text string) *modelRequest {
		fake.Say(discordtest.Message{Channel: channel, Author: mara, Content: "<@" + discordtest.BotUser + "> " + text})
		return h.nextRequest()
	}
	first := ask(thread, "for two")
	second := ask(thread, "no, for three") // also interrupts the first run
	h.awaitHangup(first)
	same(t, first.messages[0], chatMessage{"system", contextHead + "- Mara (<@" + mara + ">): a table?"})
	h.answer(second, replyWith("For three."))

	first = ask(another, "for two")
	fake.Say(discordtest.Message{Channel: another, Author: mara, Content: "<@" + discordtest.BotUser + "> no, for three"})
	h.awaitMetric(`parley_envelopes_total{disposition="stored",kind="message",reason="mention",workspace="guild"}`, 4)
	h.answer(first, replyWith("For two."))
	h.answerNext(replyWith("For three."))
	if _, err := fake.Await(h.ctx, 3); err != nil {
		t.Errorf("%v\n%s", err, h.log)
	}
}

// TestMessagesMissedByTheGatewayAreAnsweredOnce, also those that the history shows after the first read of a new
// session. The test ends sessions several times, while people write, and Discord sends nothing again. Those that
// are missed are answered in their order, and those that are heard.
func TestMessagesMissedByTheGatewayAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	const guild, mara, mention = "700000000000000001", "700000000000000005", "<@" + discordtest.BotUser + "> "
	channels := []string{"700000000000000002", "700000000000000003"}
	fake, err := discordtest.Start(discordtest.Options{HistoryLag: 700 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	fake.AddGuild(discordtest.Guild{ID: guild})
	fake.AddUser(discordtest.User{ID: mara, Username: "Mara"})
	for _, channel := range channels {
		fake.SetChannel(discordtest.Channel{ID: channel, Guild: guild})
	}
	platforms := config.Platforms()
	ours := slices.IndexFunc(platforms, func(p adapters.Platform) bool { return p.Name == event.Discord })
	platforms[ours].New = func(workspace string, c adapters.Config) adapters.Adapter {
		a := discord.New(workspace, *c.(*discord.Config))
		a.Live.Limits.IdentifyEvery, a.Live.Limits.BackoffMin = time.Millisecond, time.Millisecond
		return a
	}
	h := open(t, plan{platforms: platforms, files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: echo
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 0s}
`}})
	h.awaitState("guild", "up")
	said, count := map[string][]string{}, 0 // by channel and kind
	say := func(kind string) {
		for range 3 {
			for _, channel := range channels {
				count++
				text := fmt.Sprint(kind, " ", count)
				said[channel+kind] = append(said[channel+kind], text)
				fake.Say(discordtest.Message{Channel: channel, Author: mara, Content: mention + text})
			}
		}
	}
	say("heard")
	for range 3 {
		identifies, resumes := fake.Starts()
		begin := make(chan struct{})
		fake.Script(discordtest.Connect, discordtest.Fault{Hold: begin})
		fake.CloseWith(4009) // the session is forgotten
		say("missed")
		close(begin)
		say("either")
		if err := fake.AwaitStarts(h.ctx, identifies+resumes+1); err != nil {
			t.Fatalf("%v\n%s", err, h.log)
		}
		say("heard")
	}
	if _, err := fake.Await(h.ctx, count); err != nil {
		t.Fatalf("%v\n%s", err, h.log)
	}
	answered := map[string][]string{}
	for _, post := range fake.Posts("") {
		text := strings.TrimPrefix(post.Content, mention)
		kind, _, _ := strings.Cut(text, " ")
		answered[post.Channel+kind] = append(answered[post.Channel+kind], text)
	}
	for _, channel := range channels {
		slices.Sort(answered[channel+"either"])
		slices.Sort(said[channel+"either"])
	}
	same(t, answered, said)
}

// TestNotesNameWhatMessagesMention: the agent reads the names of the people, roles and channels that the turn
// and its context mention. No call of Discord's API asks for a name.
func TestNotesNameWhatMessagesMention(t *testing.T) {
	t.Parallel()
	const (
		guild, shed, tools = "700000000000000001", "700000000000000002", "700000000000000003"
		mara, sam, zoe     = "700000000000000005", "700000000000000006", "700000000000000007"
		growers            = "700000000000000008"
	)
	var asked atomic.Int32
	fake, err := discordtest.Start(discordtest.Options{OnCall: func(c discordtest.Call) {
		if c.Route == discordtest.GetUser || c.Route == discordtest.GetMember {
			asked.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	for id, name := range map[string]string{mara: "Mara", sam: "samuelo", zoe: "zoe"} {
		fake.AddUser(discordtest.User{ID: id, Username: name, GlobalName: map[string]string{sam: "Samuel", zoe: "Zoe Z."}[id]})
	}
	fake.AddGuild(discordtest.Guild{ID: guild, Nicks: map[string]string{sam: "Sam (shed)"}, Roles: map[string]string{growers: "growers"}})
	fake.SetChannel(discordtest.Channel{ID: shed, Guild: guild, Name: "shed"})
	fake.SetChannel(discordtest.Channel{ID: tools, Guild: guild, Name: "tools"})
	h := open(t, plan{helper: "notes: [names]", files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 0s}
`}})
	h.awaitState("guild", "up")
	asked.Store(0)
	fake.Say(discordtest.Message{Channel: shed, Author: mara, Content: "<@" + zoe + "> has the key"})
	fake.Say(discordtest.Message{Channel: shed, Author: mara, Content: "<@" + discordtest.BotUser + "> ask <@" + sam + "> and <@&" + growers + "> in <#" + tools + ">"})
	request := h.answerNext(replyWith("Yes."))
	system := request.messages[0].Content
	for token, name := range map[string]string{"<@" + zoe + ">": "Zoe Z.", "<@" + sam + ">": "Sam (shed)", "<@&" + growers + ">": "growers", "<#" + tools + ">": "tools"} {
		if !strings.Contains(system, "\n- "+token+" is "+name+"\n") {
			t.Errorf("the notes do not name %s:\n%s", name, system)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("Discord was asked for %d names", asked.Load())
	}
}

// TestNotesNameThePlace: the agent reads the names of the server, of the forum with its guidelines, and the title of the post, even
// after a person has changed the title.
func TestNotesNameThePlace(t *testing.T) {
	t.Parallel()
	const guild, forum, post, mara = "700000000000000001", "700000000000000002", "700000000000000003", "700000000000000005"
	fake, err := discordtest.Start(discordtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	fake.AddUser(discordtest.User{ID: mara, Username: "Mara"})
	fake.AddGuild(discordtest.Guild{ID: guild, Name: "Garden"})
	fake.SetChannel(discordtest.Channel{ID: forum, Guild: guild, Name: "questions", Type: discordtest.Forum, Topic: "One pump for each post.\n- Now: never"})
	h := open(t, plan{helper: "notes: [place]", files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 0s}
`}})
	h.awaitState("guild", "up")
	for _, title := range []string{"Why does pump 3 show E4?", "Why does pump 4 show E4?"} {
		fake.SetChannel(discordtest.Channel{ID: post, Guild: guild, Parent: forum, Name: title, Type: discordtest.PublicThread})
		fake.Say(discordtest.Message{Channel: post, Author: mara, Content: "<@" + discordtest.BotUser + "> see title"})
		request := h.answerNext(replyWith("Look at the valve."))
		same(t, request.messages[0].Content, "<!-- NOTES_START -->\n- Workspace: Garden\n- Channel: questions\n"+
			"- Topic of the channel: One pump for each post. - Now: never\n- Title of this thread: "+title+"\n<!-- NOTES_END -->")
	}
}

// TestStoppedCommandsStopThinking: Discord shows "is thinking" below each command of a turn. A stop before the
// turn's run ends all of them.
func TestStoppedCommandsStopThinking(t *testing.T) {
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
turns: {coalesce: 1h, coalesce_max: 1h}
`}})
	h.awaitState("guild", "up")
	asked := make([]discordtest.Interaction, 0, 3)
	for range 2 {
		i, _ := fake.Command(shed, mara, "is it dry?")
		asked = append(asked, i)
	}
	h.awaitMetric(`parley_envelopes_total{disposition="stored",kind="command",reason="command",workspace="guild"}`, 2)
	stop, _ := fake.ChatCommand(shed, mara, "stop")
	for _, i := range append(asked, stop) {
		ended := func(now discordtest.Interaction) bool {
			return now.Type != 0 && fake.Has(shed, now.Answer) == (i.Token == stop.Token)
		}
		for now := fake.Asked(i.Token); !ended(now); now = fake.Asked(i.Token) {
			if !h.poll() {
				t.Fatalf("the response to %s: %+v\n%s", i.ID, now, h.log)
			}
		}
	}
	if posts := fake.Posts(shed); len(posts) != 1 || posts[0].Content != "Stopped." {
		t.Errorf("the posts are %+v", posts)
	}
}
