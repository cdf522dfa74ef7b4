package slacktest_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

func TestUpdateReplacesContent(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	_, ts, err := client.PostMessageContext(t.Context(), channel, markdown("**one**"),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "t", EventPayload: map[string]any{"key": "k"}}))
	if err != nil {
		t.Fatal(err)
	}
	for edits, c := range []struct {
		option slack.MsgOption
		shown  string
		blocks bool
		edited string
	}{
		{slack.MsgOptionText("two", false), "two", false, "1700000000.000000"},
		{markdown("three"), "three", true, ""},
		{slack.MsgOptionMarkdownText("four"), "four", false, "1700000000.000000"},
	} {
		if _, _, _, err := client.UpdateMessageContext(t.Context(), channel, ts, c.option); err != nil {
			t.Fatal(err)
		}
		got := message(t, server, ts)
		if got.Shown() != c.shown || (got.Blocks != nil) != c.blocks || got.EditedTS != c.edited || got.Edits != edits+1 || got.Key() != "k" {
			t.Errorf("after %s: %+v", c.shown, got)
		}
	}
}

func TestEmptyObjectRemovesMetadata(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	ts := post(t, client, "text", slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "t", EventPayload: map[string]any{"key": "k"}}))
	none := slack.UnsafeMsgOptionEndpoint(server.URL()+"chat.update", func(v url.Values) { v.Set("metadata", "{}") })
	if _, _, _, err := client.UpdateMessageContext(t.Context(), channel, ts, none); err != nil {
		t.Fatal(err)
	}
	if got := message(t, server, ts); got.Metadata != nil || got.Text != "text" {
		t.Errorf("%+v", got)
	}
}

func TestRefusedUpdates(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	ours := post(t, client, "ours")
	theirs := server.Put(slacktest.Post{Channel: channel, User: "U1", Text: "theirs"}).TS
	gone := post(t, client, "gone")
	if _, _, err := client.DeleteMessageContext(t.Context(), channel, gone); err != nil {
		t.Fatal(err)
	}
	update := func(ts, text string) error {
		_, _, _, err := client.UpdateMessageContext(t.Context(), channel, ts, slack.MsgOptionText(text, false))
		return err
	}
	remove := func(ts string) error {
		_, _, err := client.DeleteMessageContext(t.Context(), channel, ts)
		return err
	}
	wantCode(t, "the longest text", update(ours, strings.Repeat("é", 4_000)), "")
	wantCode(t, "too long", update(ours, strings.Repeat("é", 4_001)), "msg_too_long")
	wantCode(t, "empty", update(ours, ""), "no_text")
	wantCode(t, "another's", update(theirs, "x"), "cant_update_message")
	wantCode(t, "unknown", update("1600000000.000001", "x"), "message_not_found")
	wantCode(t, "deleted", update(gone, "x"), "message_not_found")
	wantCode(t, "delete another's", remove(theirs), "cant_delete_message")
	wantCode(t, "delete twice", remove(gone), "message_not_found")
	if got := message(t, server, theirs).Text; got != "theirs" {
		t.Errorf("the other user's message is now %q", got)
	}
}

func TestHistoryShowsCurrentState(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	put := func(text, root string) string {
		return server.Put(slacktest.Post{Channel: channel, User: "U1", Text: text, ThreadTS: root}).TS
	}
	root, typo, gone := put("root", ""), put("tpyo", ""), put("gone", "")
	reply := put("reply", root)
	if server.Edit(channel, typo, "typo") == nil || server.Delete(channel, gone) == nil || server.Edit(channel, "1.000001", "x") != nil {
		t.Error("Edit or Delete failed for a message, or succeeded without one")
	}
	read := func() []slack.Message {
		page, err := client.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: channel})
		if err != nil {
			t.Fatal(err)
		}
		return page.Messages
	}
	got := read()
	if diff := cmp.Diff([]string{"typo", "root"}, texts(got)); diff != "" {
		t.Fatal(diff)
	}
	if got[0].Edited == nil || got[0].Edited.User != "U1" || got[1].ReplyCount != 1 {
		t.Errorf("edited %+v, %d replies", got[0].Edited, got[1].ReplyCount)
	}
	server.Delete(channel, root)
	if got = read(); len(got) != 2 || got[1].SubType != "tombstone" || got[1].Text == "root" {
		t.Errorf("the deleted root is shown as %+v", got[1])
	}
	server.Delete(channel, reply)
	if got = read(); len(got) != 1 {
		t.Errorf("a deleted root without replies is shown as %+v", got)
	}
}

// messageEvent is the event of a message.
type messageEvent struct {
	slack.Msg
	Message  *slack.Msg `json:"message"`
	Previous *slack.Msg `json:"previous_message"`
}

func readEvent(t *testing.T, raw []byte) (event messageEvent) {
	t.Helper()
	if err := json.Unmarshal(raw, &event); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return event
}

func TestEventOfOthersChange(t *testing.T) {
	moving := &clock{}
	server, _ := start(t, moving.options())
	ts := server.Put(slacktest.Post{Channel: channel, User: "U1", Text: "one"}).TS
	server.React(channel, ts, "U2", "eyes")
	moving.pass(90*time.Second + time.Millisecond)

	edit := readEvent(t, server.Edit(channel, ts, "two"))
	if edit.SubType != "message_changed" || edit.Message.Text != "two" || edit.Message.Timestamp != ts || edit.Timestamp != "1700000090.001000" ||
		edit.Message.Edited.Timestamp != "1700000090.000000" || edit.Previous.Text != "one" || edit.Channel != channel {
		t.Errorf("the edit is %+v", edit)
	}
	if got := message(t, server, ts); got.Edits != 1 {
		t.Errorf("the edited message is %+v", got)
	}
	deletion := readEvent(t, server.Delete(channel, ts))
	if deletion.SubType != "message_deleted" || deletion.DeletedTimestamp != ts || deletion.Previous.Text != "two" {
		t.Errorf("the deletion is %+v", deletion)
	}
	if left := server.Reactions(channel, ts); len(left) != 0 {
		t.Errorf("the deleted message has the reactions %+v", left)
	}
}
