package daemon_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/postgres/postgrestest"
)

const boss, deputy, eve = "U0BOSS", "U0DEPUTY", "U0EVE"

// strange is a daemon whose policy asks two approvers about strangers.
type strange struct {
	*harness
	serial int
}

func openStrange(t *testing.T, p plan) *strange {
	t.Helper()
	p.helper = "approvers: [" + boss + ", " + deputy + ", \"group:S0TEAM\"]"
	p.acme = "policy: {allow_users: [" + mara + "], strangers: ask}"
	s := &strange{harness: open(t, p)}
	for id, name := range map[string]string{boss: "Bea", deputy: "Dan", eve: "Eve `*x*` <!here>"} {
		s.slack.AddUser(slacktest.User{ID: id, Name: name})
	}
	s.slack.SetHook(slacktest.Hook{URL: s.url + "/hooks/slack/acme", Secret: signingSecret})
	return s
}

func (s *strange) say(user, text string) slacktest.Message {
	s.t.Helper()
	m := s.newMessage("<@" + slacktest.BotUser + "> " + text)
	m.User = user
	s.accept(m.Mention())
	return m
}

// asked waits for the nth direct message to a user.
func (s *strange) asked(user string, n int) slacktest.Post {
	s.t.Helper()
	for {
		var list []slacktest.Post
		for _, p := range s.slack.Posts() {
			if p.Channel == "D"+user {
				list = append(list, p)
			}
		}
		if len(list) >= n {
			return list[n-1]
		}
		if !s.poll() {
			s.t.Fatalf("%s has %d direct messages, want %d\n%s", user, len(list), n, s.log)
		}
	}
}

// awaitText waits until a direct message is closed with a text.
func (s *strange) awaitText(user string, n int, end string) {
	s.t.Helper()
	for {
		p := s.asked(user, n)
		if strings.HasSuffix(withoutZeroWidth(p.Shown()), end) && !strings.Contains(string(p.Blocks), "button") {
			return
		}
		if !s.poll() {
			s.t.Fatalf("the direct message to %s is %q %s, want %q\n%s", user, p.Shown(), p.Blocks, end, s.log)
		}
	}
}

// press presses a button of a direct message to a user, as another one.
func (s *strange) press(as, user string, post slacktest.Post, button int) {
	s.t.Helper()
	var blocks []struct {
		Elements []json.RawMessage `json:"elements"`
	}
	if err := json.Unmarshal(post.Blocks, &blocks); err != nil || len(blocks) != 2 || len(blocks[1].Elements) != 3 {
		s.t.Fatalf("the blocks are %s, %v", post.Blocks, err)
	}
	s.serial++
	channel := "D" + user
	result, err := s.slack.PushRaw(slacktest.Interactive, fmt.Appendf(nil, `{"type":"block_actions","api_app_id":%q,"team":{"id":%q},"user":{"id":%q},"trigger_id":"1.2.%d",
		"channel":{"id":%q,"name":"directmessage"},"container":{"type":"message","message_ts":%q,"channel_id":%q},
		"message":{"bot_id":%q,"text":"x","ts":%q},"actions":[%s]}`,
		slacktest.App, slacktest.Team, as, s.serial, channel, post.TS, channel, slacktest.BotID, post.TS, blocks[1].Elements[button])).Wait(s.ctx)
	if err != nil || result.State != slacktest.Acked {
		s.t.Fatalf("%+v, %v\n%s", result, err, s.log)
	}
}

func (s *strange) ignored(reason string, n int) {
	s.t.Helper()
	s.awaitMetric(`parley_envelopes_total{disposition="ignored",kind="message",reason="`+reason+`",workspace="acme"}`, float64(n))
}

// answered checks that the agent gets a message.
func (s *strange) answered(text string) {
	s.t.Helper()
	request := s.answerNext(replyWith("Yes."))
	if last := request.messages[len(request.messages)-1].Content; !strings.HasSuffix(last, text) {
		s.t.Errorf("the agent reads %q, want %q", last, text)
	}
}

// TestStrangersAsk: a stranger's first message asks each approver who is a user, once; the answer takes effect on the message that waits, over
// a restart, and the other approvers see who has answered.
func TestStrangersAsk(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": postgrestest.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			strangersAsk(t, openStrange(t, plan{store: store(t)}))
		})
	}
}

func strangersAsk(t *testing.T, s *strange) {
	s.say(mara, "on the list")
	s.answered("on the list")
	s.say(eve, "first")
	question := s.asked(boss, 1)
	text := withoutZeroWidth(question.Shown())
	if !strings.Contains(text, "slack:"+eve) || !strings.Contains(text, "wants to talk to me") || strings.Contains(text, "first") {
		t.Errorf("the question is %q", text)
	}
	if strings.Contains(question.Markdown+string(question.Blocks)+question.Text, "<!here>") {
		t.Errorf("the name is markup: %+v", question)
	}
	other := s.asked(deputy, 1)
	s.ignored("stranger-asked", 1)
	if told := s.private(1); told.User != eve || !strings.Contains(told.Text, "I have asked") {
		t.Errorf("%+v", told)
	}
	s.say(eve, "second")
	s.ignored("stranger-waits", 1)
	s.restart()
	s.awaitState("acme", "up")
	s.slack.SetHook(slacktest.Hook{URL: s.url + "/hooks/slack/acme", Secret: signingSecret})

	s.press(mara, boss, question, 1) // admitted, and no approver
	s.press(boss, boss, question, 0)
	s.answered("first")
	s.press(deputy, deputy, other, 2) // too late
	s.awaitText(boss, 1, "wanted to talk to me. The answer of <@"+boss+">: once.")
	s.awaitText(deputy, 1, "wanted to talk to me. The answer of <@"+boss+">: once.")
	if n := len(s.slack.Ephemerals()); n != 1 {
		t.Errorf("%d sentences were said to people alone", n)
	}

	s.say(eve, "third")
	question = s.asked(boss, 2)
	s.press(deputy, deputy, s.asked(deputy, 2), 1)
	s.answered("third")
	s.awaitText(boss, 2, "<@"+deputy+">: always.")
	s.say(eve, "fourth")
	s.answered("fourth")

	s.say("U0OTTO", "I am Otto")
	s.press(boss, boss, s.asked(boss, 3), 2)
	s.awaitText(deputy, 3, "<@"+boss+">: no.")
	s.say("U0OTTO", "hello?")
	s.ignored("stranger-no", 1)
}

// TestStrangersOnTwoNodes: one node has asked, the other one gets the press, and the answer holds on both.
func TestStrangersOnTwoNodes(t *testing.T) {
	t.Parallel()
	p := plan{store: postgrestest.URL(t)}
	s := openStrange(t, p)
	s.say(eve, "first")
	question := s.asked(boss, 1)
	p.helper, p.acme = "approvers: ["+boss+", "+deputy+"]", "policy: {allow_users: ["+mara+"], strangers: ask}"
	p.dir = journaltest.Dir(t)
	p.write(t, s.places)
	h := *s.harness
	h.dir, h.log = p.dir, new(log)
	if err := h.start(filepath.Join(p.dir, "parley.yaml")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	})
	s.slack.SetHook(slacktest.Hook{URL: h.url + "/hooks/slack/acme", Secret: signingSecret})
	s.press(boss, boss, question, 1)
	s.answered("first")
	s.awaitText(deputy, 1, "<@"+boss+">: always.")
	s.say(eve, "second") // to the first node
	s.answered("second")
}

// TestStrangersOfOperators: an operator answers for the approvers and takes a decision back, a question ends after a day, and a forgotten
// person is a stranger again. Forged presses change nothing.
func TestStrangersOfOperators(t *testing.T) {
	t.Parallel()
	s := openStrange(t, plan{})
	decide := func(decision, workspace string) error {
		_, err := s.operate().DecidePerson(s.ctx, "slack:"+eve, decision, workspace, "because")
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := decide("admit", ""); err == nil {
		t.Error("a person is admitted who has never asked")
	}
	direct := s.newMessage("first")
	direct.User, direct.Channel, direct.ChannelType = eve, "D"+eve, "im"
	s.accept(direct.Event())
	question := s.asked(boss, 1)
	if err := decide("ask", ""); err == nil {
		t.Error("an open question is taken back")
	}
	people, err := s.operate().People(s.ctx, nil)
	must(err)
	if n := len(people.Items); n != 1 || len(people.Items[0].Access) != 1 || people.Items[0].Access[0].State != "asked" {
		t.Errorf("%+v", people.Items)
	}
	must(decide("admit", ""))
	s.answered("first")
	s.awaitText(boss, 1, "The answer of `operator:local`: always.")
	if err := decide("refuse", "elsewhere"); err == nil {
		t.Error("a decision holds in a workspace that there is not")
	}
	must(decide("refuse", "acme"))
	s.say(eve, "second")
	s.ignored("stranger-no", 1)
	must(decide("ask", ""))
	s.say(eve, "third")
	s.asked(boss, 2)
	s.press(boss, boss, question, 1) // the button of the first question
	s.press(eve, boss, s.asked(boss, 2), 1)
	s.clock.advance(25 * time.Hour)
	s.awaitText(boss, 2, "Nobody answered within a day, so this is closed. The next message asks again.")
	s.awaitText(deputy, 2, "The next message asks again.")
	s.last = s.last.Add(25 * time.Hour)
	s.say(eve, "fourth")
	s.press(boss, boss, s.asked(boss, 3), 1)
	s.answered("fourth")
	s.awaitText(boss, 3, "<@"+boss+">: always.")
	_, err = s.operate().ForgetPerson(s.ctx, "slack:"+eve, "")
	must(err)
	s.last = s.last.Add(time.Minute)
	s.say(eve, "fifth")
	s.asked(boss, 4)
}

// TestStrangersEditWhatWaits: the agent gets a message that waits for the approvers as its author has edited it, once.
func TestStrangersEditWhatWaits(t *testing.T) {
	t.Parallel()
	s := openStrange(t, plan{})
	for n, button := range []int{0, 1} {
		m := s.say(eve, "first")
		question := s.asked(boss, n+1)
		s.accept(edited(m, "<@"+slacktest.BotUser+"> second"))
		s.awaitMetric("parley_pending_envelopes", 1)
		s.press(boss, boss, question, button)
		s.answered("second")
		s.awaitText(deputy, n+1, "<@"+boss+">: "+[]string{"once", "always"}[n]+".")
	}
	s.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 2)
}

// TestStrangersOnDiscord asks about a stranger's slash command, and answers it.
func TestStrangersOnDiscord(t *testing.T) {
	t.Parallel()
	const guild, shed, his, mara, eve = "700000000000000001", "700000000000000002", "700000000000000004", "700000000000000005", "700000000000000006"
	fake, err := discordtest.Start(discordtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	fake.AddGuild(discordtest.Guild{ID: guild})
	fake.AddUser(discordtest.User{ID: mara, Username: "Mara"})
	fake.AddUser(discordtest.User{ID: eve, Username: "Eve"})
	fake.SetChannel(discordtest.Channel{ID: shed, Guild: guild})
	fake.SetChannel(discordtest.Channel{ID: his, Type: discordtest.Direct, User: mara})
	h := open(t, plan{helper: "approvers: [\"" + mara + "\"]", files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off}
turns: {coalesce: 0s}
policy: {allow_users: ["` + mara + `"], strangers: ask}
`}})
	h.awaitState("guild", "up")
	asked, _ := fake.Command(shed, eve, "may I?")
	var question discordtest.Message
	for len(fake.Posts(his)) == 0 {
		if !h.poll() {
			t.Fatalf("the approver has no direct message\n%s", h.log)
		}
	}
	question = fake.Posts(his)[0]
	if !strings.Contains(question.Content, "`discord:"+eve+"`") || strings.Contains(question.Content, "may I") {
		t.Errorf("the question is %q", question.Content)
	}
	var rows []struct {
		Components []struct {
			CustomID string `json:"custom_id"`
		}
	}
	if err := json.Unmarshal(question.Components, &rows); err != nil || len(rows) != 1 || len(rows[0].Components) != 3 {
		t.Fatalf("the buttons are %s, %v", question.Components, err)
	}
	fake.Ask(his, mara, 3, map[string]any{"custom_id": rows[0].Components[0].CustomID, "component_type": 2}, map[string]any{"message": map[string]any{
		"id": question.ID, "channel_id": his, "author": map[string]any{"id": discordtest.BotUser, "bot": true}, "content": question.Content,
	}})
	if last := h.answerNext(replyWith("Yes, once.")).messages; !strings.Contains(last[len(last)-1].Content, "may I?") {
		t.Errorf("the agent reads %q", last)
	}
	for !strings.Contains(fake.Posts(his)[0].Content, "The answer of <@"+mara+">: once.") || strings.Contains(string(fake.Posts(his)[0].Components), "custom_id") {
		if !h.poll() {
			t.Fatalf("the question is %+v\n%s", fake.Posts(his)[0], h.log)
		}
	}
	shown := func() string {
		all := ""
		for _, p := range fake.Posts(shed) {
			all += p.Content + "\n"
		}
		return all
	}
	for !strings.Contains(shown(), "Yes, once.") {
		if !h.poll() {
			t.Fatalf("people see %q, and of the command %+v\n%s", shown(), fake.Asked(asked.Token), h.log)
		}
	}
}
