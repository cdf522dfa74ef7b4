package slacktest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

func TestReactions(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	ts := server.Put(slacktest.Post{Channel: channel, User: "U1", Text: "hi"}).TS
	at := slack.NewRefToMessage(channel, ts)
	add := func(name string) error { return client.AddReactionContext(t.Context(), name, at) }
	remove := func(name string) error { return client.RemoveReactionContext(t.Context(), name, at) }

	wantCode(t, "add", add("eyes"), "")
	wantCode(t, "add again", add("eyes"), "already_reacted")
	wantCode(t, "add another", add("+1::skin-tone-2"), "")
	wantCode(t, "remove an absent reaction", remove("wave"), "no_reaction")
	wantCode(t, "no name", add(":eyes:"), "invalid_name")
	wantCode(t, "no message", client.AddReactionContext(t.Context(), "eyes", slack.NewRefToMessage(channel, root)), "message_not_found")
	if server.React(channel, ts, "U2", "eyes") == nil || server.React(channel, ts, "U2", "eyes") != nil {
		t.Error("the other user reacted twice, or not at all")
	}
	want := []slacktest.Reaction{{Name: "eyes", Users: []string{"U0BOT", "U2"}}, {Name: "+1::skin-tone-2", Users: []string{"U0BOT"}}}
	if diff := cmp.Diff(want, server.Reactions(channel, ts)); diff != "" {
		t.Error(diff)
	}
	item, err := client.GetReactionsContext(t.Context(), at, slack.GetReactionsParameters{})
	if err != nil || len(item.Reactions) != 2 || item.Reactions[0].Count != 2 || item.Message.Text != "hi" {
		t.Errorf("%+v, %v", item, err)
	}

	wantCode(t, "remove", remove("eyes"), "")
	wantCode(t, "remove the last of its kind", remove("+1::skin-tone-2"), "")
	if diff := cmp.Diff([]slacktest.Reaction{{Name: "eyes", Users: []string{"U2"}}}, server.Reactions(channel, ts)); diff != "" {
		t.Error(diff)
	}
	if server.Unreact(channel, ts, "U2", "eyes") == nil || len(server.Reactions(channel, ts)) != 0 {
		t.Errorf("after the removal the message has %+v", server.Reactions(channel, ts))
	}
}
