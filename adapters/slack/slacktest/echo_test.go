package slacktest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

func TestEchoOfOwnChanges(t *testing.T) {
	var events [][]byte
	for _, echo := range []bool{false, true} {
		events = nil
		_, client := start(t, slacktest.Options{Echo: echo, OnEvent: func(e []byte) { events = append(events, e) }})
		ts := post(t, client, "one")
		_, _, _, err := client.UpdateMessageContext(t.Context(), channel, ts, slack.MsgOptionText("two", false))
		wantCode(t, "update", err, "")
		wantCode(t, "react", client.AddReactionContext(t.Context(), "eyes", slack.NewRefToMessage(channel, ts)), "")
		wantCode(t, "react again", client.AddReactionContext(t.Context(), "eyes", slack.NewRefToMessage(channel, ts)), "already_reacted")
		wantCode(t, "unreact", client.RemoveReactionContext(t.Context(), "eyes", slack.NewRefToMessage(channel, ts)), "")
		stream := begin(t, client, slack.MsgOptionMarkdownText("a"))
		wantCode(t, "append", stream.append("b"), "")
		wantCode(t, "stop", stream.stop(), "")
		_, _, err = client.DeleteMessageContext(t.Context(), channel, ts)
		wantCode(t, "delete", err, "")
		if !echo && len(events) > 0 {
			t.Fatalf("OnEvent received an event without Echo: %s", events[0])
		}
	}
	var got []string
	for _, raw := range events {
		e := readEvent(t, raw)
		text := e.Type + " " + e.SubType
		for _, m := range []*slack.Msg{e.Previous, e.Message} {
			if m != nil {
				text += " " + m.Text
			}
		}
		if e.Type == "message" && e.SubType == "" {
			text += e.Text + " in " + e.Channel + " of " + e.BotID
		}
		got = append(got, text)
	}
	want := []string{"message one in C0ROOM of B0BOT", "message message_changed one two", "reaction_added ", "reaction_removed ",
		"message a in C0ROOM of B0BOT", "message message_changed ab ab", "message message_deleted two"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOnEventMayCallServer(t *testing.T) {
	var server *slacktest.Server
	var client *slack.Client
	var texts []string
	server, client = start(t, slacktest.Options{Echo: true, OnEvent: func(e []byte) {
		event := readEvent(t, e)
		texts = append(texts, event.Text)
		if len(texts) < 3 {
			server.Put(slacktest.Post{Channel: channel, User: "U1", Text: "answer"})
			post(t, client, event.Text+"!")
		}
	}})
	post(t, client, "one")
	if diff := cmp.Diff([]string{"one", "one!", "one!!"}, texts); diff != "" {
		t.Error(diff)
	}
}

func TestEchoOfSharedFile(t *testing.T) {
	var events []messageEvent
	server, client := start(t, slacktest.Options{Echo: true, OnEvent: func(e []byte) { events = append(events, readEvent(t, e)) }})
	root := server.Put(slacktest.Post{Channel: channel, User: "U1", Text: "question"}).TS
	_, err := client.UploadFileContext(t.Context(), slack.UploadFileParameters{Filename: "a.txt", FileSize: 1,
		Reader: strings.NewReader("x"), Channel: channel, ThreadTimestamp: root})
	if err != nil || len(events) != 1 {
		t.Fatal(events, err)
	}
	if e := events[0]; e.SubType != "file_share" || len(e.Files) != 1 || e.Files[0].Name != "a.txt" || e.ParentUserId != "U1" {
		t.Errorf("%+v", e)
	}
}
