package slacktest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

func TestRootShowsThread(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	server.AddFile(slacktest.File{ID: "F1", Name: "a.txt"})
	root := server.Put(slacktest.Post{Channel: channel, User: "U1", Text: "root", Files: []string{"F1"}, Team: "T0ELSE"}).TS
	server.Put(slacktest.Post{Channel: channel, User: "U2", Text: "one", ThreadTS: root})
	last := post(t, client, "two", under(root))
	broadcast := post(t, client, "three", under(root), slack.MsgOptionBroadcast())
	server.Delete(channel, broadcast)
	broadcast = post(t, client, "four", under(root), slack.MsgOptionBroadcast())

	page, err := client.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: channel})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"four", "root"}, texts(page.Messages)); diff != "" {
		t.Fatal(diff)
	}
	if m := page.Messages[0]; m.SubType != "thread_broadcast" || m.ThreadTimestamp != root {
		t.Errorf("the broadcast reply is %+v", m)
	}
	m := page.Messages[1]
	if m.ReplyCount != 3 || m.LatestReply != broadcast || m.ThreadTimestamp != root || m.Team != "T0ELSE" || len(m.Files) != 1 ||
		cmp.Diff([]string{"U2", "U0BOT"}, m.ReplyUsers) != "" {
		t.Errorf("the root is %+v", m)
	}
	replies, _, _, err := client.GetConversationRepliesContext(t.Context(), &slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root})
	if diff := cmp.Diff([]string{"root", "one", "two", "four"}, texts(replies)); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	for i, p := range server.Thread(channel, root) {
		if p.Text != replies[i].Text {
			t.Errorf("Thread returns %q, the API %q", p.Text, replies[i].Text)
		}
	}
	if n := len(server.Thread(channel, root)); n != len(replies) {
		t.Errorf("Thread returns %d messages", n)
	}
	if m := replies[2]; m.Timestamp != last || m.ParentUserId != "U1" || m.BotID != slacktest.BotID {
		t.Errorf("the reply is %+v", m)
	}
	post(t, client, "in another thread", under("1600000000.000001"))
	server.Delete(channel, broadcast)
	replies, _, _, err = client.GetConversationRepliesContext(t.Context(), &slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root})
	if err != nil || replies[0].ReplyCount != 2 || replies[0].LatestReply != last {
		t.Errorf("without the newest reply the root is %+v, %v", replies[0], err)
	}
}

func TestRepliesArePaged(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	root := server.Put(slacktest.Post{Channel: channel, User: "U1", Text: "root"}).TS
	for _, text := range []string{"a", "b", "c"} {
		post(t, client, text, under(root))
		post(t, client, "elsewhere")
	}
	var got [][]string
	query := slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root, Limit: 2}
	for {
		page, more, next, err := client.GetConversationRepliesContext(t.Context(), &query)
		if err != nil || more != (next != "") {
			t.Fatal(more, next, err)
		}
		got = append(got, texts(page))
		if query.Cursor = next; !more {
			break
		}
	}
	if diff := cmp.Diff([][]string{{"root", "a"}, {"b", "c"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHistoryWindow(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	for _, ts := range []string{"1600000000.000300", "1600000000.000100", "1600000000.000200", "1600000000.000400"} {
		server.Put(slacktest.Post{Channel: channel, User: "U1", Text: ts[14:], TS: ts})
	}
	for name, c := range map[string]struct {
		query slack.GetConversationHistoryParameters
		want  []string
	}{
		"after":         {slack.GetConversationHistoryParameters{Oldest: "1600000000.000200"}, []string{"400", "300"}},
		"from":          {slack.GetConversationHistoryParameters{Oldest: "1600000000.000200", Inclusive: true}, []string{"400", "300", "200"}},
		"before":        {slack.GetConversationHistoryParameters{Latest: "1600000000.000200"}, []string{"100"}},
		"to":            {slack.GetConversationHistoryParameters{Latest: "1600000000.000200", Inclusive: true}, []string{"200", "100"}},
		"between":       {slack.GetConversationHistoryParameters{Oldest: "1600000000.0001", Latest: "1600000000.000400"}, []string{"300", "200"}},
		"from and to":   {slack.GetConversationHistoryParameters{Oldest: "1600000000.000200", Latest: "1600000000.000300", Inclusive: true}, []string{"300", "200"}},
		"whole seconds": {slack.GetConversationHistoryParameters{Oldest: "1600000000", Latest: "1600000001"}, []string{"400", "300", "200", "100"}},
		"nothing":       {slack.GetConversationHistoryParameters{Latest: "1500000000"}, nil},
	} {
		c.query.ChannelID = channel
		page, err := client.GetConversationHistoryContext(t.Context(), &c.query)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, texts(page.Messages)); diff != "" {
			t.Error(name, diff)
		}
	}
	replies, _, _, err := client.GetConversationRepliesContext(t.Context(),
		&slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: "1600000000.000200"})
	if diff := cmp.Diff([]string{"200"}, texts(replies)); diff != "" || err != nil {
		t.Error("a message without replies:", diff, err)
	}
	_, err = client.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: channel, Oldest: "yesterday"})
	wantCode(t, "an invalid time", err, "invalid_ts_oldest")
}

func TestPutReplacesSameTS(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	const ts = "1600000000.000100"
	server.Put(slacktest.Post{Channel: channel, User: "U1", TS: ts, Text: "one"})
	for range 2 {
		server.Put(slacktest.Post{Channel: channel, User: "U1", TS: "1600000000.000200", ThreadTS: ts, Text: "reply"})
	}
	page, err := client.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: channel})
	if err != nil || len(page.Messages) != 1 || page.Messages[0].ReplyCount != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}
