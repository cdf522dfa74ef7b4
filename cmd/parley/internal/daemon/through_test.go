package daemon_test

import (
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

// TestAppOfAPerson: a post that an app of policy.apps_of_people has made with a person's token is the person's. Another app's post, one
// with the app's own bot as the user, and one of somebody whom the platform does not know, are of a bot.
func TestAppOfAPerson(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: "policy: {apps_of_people: [A0DESK]}"})
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.slack.AddUser(slacktest.User{ID: "U0DESK", DisplayName: "Desk", IsBot: true})
	post := func(app, user, text string) {
		m := h.newMessage("")
		h.accept(inner(`{"type":"message","channel":"` + room + `","channel_type":"channel","user":"` + user + `","bot_id":"B0DESK","app_id":"` + app + `",
			"bot_profile":{"name":"Voice desk","app_id":"` + app + `"},"ts":"` + m.TS + `","text":"<@` + slacktest.BotUser + `> ` + text + `"}`))
	}
	post("A0OTHER", mara, "another app")
	post("A0DESK", "U0DESK", "its own words")
	post("A0DESK", "U0GONE", "nobody")
	post("A0DESK", mara, "it is me")
	request := h.answerNext(replyWith("Yes."))
	if last := request.messages[len(request.messages)-1].Content; !strings.Contains(last, "[Mara (<@"+mara+">)]: <@"+slacktest.BotUser+"> it is me") {
		t.Errorf("the agent reads %q", last)
	}
	if got := h.posts(1); len(got) != 1 || got[0].Text != "Yes." {
		t.Errorf("%+v", got)
	}
}
