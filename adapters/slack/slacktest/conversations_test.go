package slacktest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

// town starts a workspace with a channel of each kind.
func town(t *testing.T, options slacktest.Options) (*slacktest.Server, *slack.Client) {
	server, client := start(t, options)
	for _, c := range []slacktest.Channel{
		{ID: "C1", Name: "general", Members: []string{"U2", "U1"}}, {ID: "C2", Name: "elsewhere", NotMember: true},
		{ID: "C3", Name: "old", Archived: true}, {ID: "C4", Name: "secret", Kind: slacktest.PrivateChannel},
		{ID: "D1", User: "U1"}, {ID: "G1", Members: []string{"U1"}}, {ID: "C5", Name: "random"},
	} {
		server.SetChannel(c)
	}
	return server, client
}

func ids(channels []slack.Channel) (out []string) {
	for _, c := range channels {
		out = append(out, c.ID)
	}
	return out
}

// TestDirectMessagesAreOpenedOnce: a conversation that is there already is found.
func TestDirectMessagesAreOpenedOnce(t *testing.T) {
	server, client := town(t, slacktest.Options{})
	for user, want := range map[string]string{"U1": "D1", "U2": "DU2"} {
		server.AddUser(slacktest.User{ID: user})
		opened, _, _, err := client.OpenConversationContext(t.Context(), &slack.OpenConversationParameters{Users: []string{user}})
		if err != nil || opened.ID != want {
			t.Errorf("%s: %+v, %v", user, opened, err)
		}
	}
}

// TestRepliesNameTheAuthorOfTheirRoot: the event of a reply does so, and that of a root does not.
func TestRepliesNameTheAuthorOfTheirRoot(t *testing.T) {
	server, _ := town(t, slacktest.Options{})
	root := server.Put(slacktest.Post{Channel: "C1", User: slacktest.BotUser, Text: "rain"})
	for thread, want := range map[string]string{root.TS: slacktest.BotUser, "": ""} {
		m, _ := server.Say(slacktest.Message{Channel: "C1", User: "U1", Text: "how much?", ThreadTS: thread})
		if m.ParentUser != want || strings.Contains(string(m.Event()), "parent_user_id") != (want != "") {
			t.Errorf("%q: %+v", thread, m)
		}
	}
}

func TestConversationsOfBot(t *testing.T) {
	_, client := town(t, slacktest.Options{})
	for name, c := range map[string]struct {
		query slack.GetConversationsForUserParameters
		want  []string
	}{
		"public":        {slack.GetConversationsForUserParameters{}, []string{"C1", "C3", "C5"}},
		"not archived":  {slack.GetConversationsForUserParameters{ExcludeArchived: true}, []string{"C1", "C5"}},
		"private kinds": {slack.GetConversationsForUserParameters{Types: []string{"private_channel", "mpim", "im"}}, []string{"C4", "D1", "G1"}},
		"another user":  {slack.GetConversationsForUserParameters{UserID: "U1", Types: []string{"public_channel", "mpim", "im"}}, []string{"C1", "D1", "G1"}},
		"pages of two":  {slack.GetConversationsForUserParameters{Limit: 2, Types: []string{"public_channel", "im"}}, []string{"C1", "C3", "C5", "D1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for pages := 1; ; pages++ {
				page, next, err := client.GetConversationsForUserContext(t.Context(), &c.query)
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, ids(page)...); next == "" {
					break
				}
				if c.query.Cursor = next; len(page) != c.query.Limit || pages > len(c.want) {
					t.Fatalf("page %d contains %v", pages, ids(page))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	all, _, err := client.GetConversationsContext(t.Context(), &slack.GetConversationsParameters{})
	if diff := cmp.Diff([]string{"C1", "C2", "C3", "C5"}, ids(all)); diff != "" || err != nil || all[1].IsMember {
		t.Error(diff, err)
	}
	_, _, err = client.GetConversationsForUserContext(t.Context(), &slack.GetConversationsForUserParameters{Cursor: "x"})
	wantCode(t, "an invalid cursor", err, "invalid_cursor")
	_, _, err = client.GetConversationsForUserContext(t.Context(), &slack.GetConversationsForUserParameters{Types: []string{"dm"}})
	wantCode(t, "an invalid type", err, "invalid_types")
}

func TestMembers(t *testing.T) {
	_, client := town(t, slacktest.Options{})
	var got []string
	query := slack.GetUsersInConversationParameters{ChannelID: "C1", Limit: 2}
	for range 2 {
		page, next, err := client.GetUsersInConversationContext(t.Context(), &query)
		if err != nil {
			t.Fatal(err)
		}
		got, query.Cursor = append(got, page...), next
	}
	if diff := cmp.Diff([]string{"U0BOT", "U1", "U2"}, got); diff != "" || query.Cursor != "" {
		t.Error(diff, query.Cursor)
	}
	query = slack.GetUsersInConversationParameters{ChannelID: "C1", Limit: 3}
	if page, next, err := client.GetUsersInConversationContext(t.Context(), &query); len(page) != 3 || next != "" || err != nil {
		t.Error(page, next, err)
	}
}

func TestChannelKinds(t *testing.T) {
	_, client := town(t, slacktest.Options{})
	for id, want := range map[string][4]bool{
		"C1": {false, false, false, true}, "C4": {false, false, true, true}, "D1": {true, false, true, false}, "G1": {false, true, true, false},
	} {
		got, err := client.GetConversationInfoContext(t.Context(), &slack.GetConversationInfoInput{ChannelID: id})
		if err != nil || [4]bool{got.IsIM, got.IsMpIM, got.IsPrivate, got.IsChannel} != want {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
}

func TestChannelsWithoutPosts(t *testing.T) {
	_, client := town(t, slacktest.Options{})
	say := func(channel string) error {
		_, _, err := client.PostMessageContext(t.Context(), channel, slack.MsgOptionText("x", false))
		return err
	}
	wantCode(t, "archived", say("C3"), "is_archived")
	wantCode(t, "not a member", say("C2"), "not_in_channel")
	_, err := client.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: "C2"})
	wantCode(t, "read without membership", err, "not_in_channel")
	_, err = client.PostEphemeralContext(t.Context(), "C3", "U1", slack.MsgOptionText("x", false))
	wantCode(t, "ephemeral", err, "is_archived")
}

func TestNoEditsInAnArchivedChannel(t *testing.T) {
	server, client := town(t, slacktest.Options{})
	_, ts, err := client.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("x", false))
	if err != nil {
		t.Fatal(err)
	}
	for _, archived := range []bool{true, false} {
		server.SetChannel(slacktest.Channel{ID: "C1", Name: "general", Archived: archived})
		_, _, _, err = client.UpdateMessageContext(t.Context(), "C1", ts, slack.MsgOptionText("y", false))
		if archived {
			wantCode(t, "archived", err, "is_inactive")
		} else if err != nil {
			t.Error(err)
		}
	}
}

func TestEphemeral(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	for _, text := range []string{"hidden", "psst"} {
		if _, err := client.PostEphemeralContext(t.Context(), channel, "U1", slack.MsgOptionText(text, false), under(root)); err != nil {
			t.Fatal(err)
		}
		server.Put(slacktest.Post{Channel: channel, User: "U1", Text: "a reply", ThreadTS: root})
	}
	want := []slacktest.Ephemeral{{Channel: channel, ThreadTS: root, User: "U1", Text: "psst"}}
	got := server.Ephemerals()
	got[0].At = want[0].At
	if diff := cmp.Diff(want, got); diff != "" || len(server.Posts()) != 0 {
		t.Error(diff, server.Posts())
	}
}
