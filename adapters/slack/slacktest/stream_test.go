package slacktest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

const root = "1600000000.000001"

// streaming is a started stream.
type streaming struct {
	t      *testing.T
	client *slack.Client
	ts     string
}

func begin(t *testing.T, client *slack.Client, options ...slack.MsgOption) streaming {
	t.Helper()
	options = append(options, under(root), slack.MsgOptionRecipientTeamID("T0TEAM"), slack.MsgOptionRecipientUserID("U1"))
	_, ts, err := client.StartStreamContext(t.Context(), channel, options...)
	if err != nil {
		t.Fatal(err)
	}
	return streaming{t, client, ts}
}

func (s streaming) append(text string) error {
	_, _, err := s.client.AppendStreamContext(s.t.Context(), channel, s.ts, slack.MsgOptionMarkdownText(text))
	return err
}

func (s streaming) stop(options ...slack.MsgOption) error {
	_, _, err := s.client.StopStreamContext(s.t.Context(), channel, s.ts, options...)
	return err
}

func TestStreamShowsAllText(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	stream := begin(t, client, slack.MsgOptionMarkdownText("one "))
	wantCode(t, "append", stream.append("two "), "")
	if open := server.OpenStreams(); len(open) != 1 || open[0].TS != stream.ts || open[0].Shown() != "one two " {
		t.Errorf("the open streams are %+v", open)
	}
	err := stream.stop(slack.MsgOptionMarkdownText("three"), slack.MsgOptionMetadata(
		slack.SlackMetadata{EventType: "t", EventPayload: map[string]any{"key": "k"}}))
	wantCode(t, "stop", err, "")
	got := message(t, server, stream.ts)
	if got.Shown() != "one two three" || got.Key() != "k" || got.Stream != slacktest.Streamed || got.ThreadTS != root || got.N != 1 {
		t.Errorf("%+v", got)
	}
	if open := server.OpenStreams(); len(open) != 0 {
		t.Errorf("the open streams after the stop are %+v", open)
	}
	wantCode(t, "append to a stopped stream", stream.append("x"), "message_not_in_streaming_state")
	wantCode(t, "stop twice", stream.stop(), "message_not_in_streaming_state")
}

func TestStreamOfChunks(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	stream := begin(t, client, slack.MsgOptionChunks(slack.NewMarkdownTextChunk("one "), slack.NewTaskUpdateChunk("1", "look")))
	wantCode(t, "the argument markdown_text", stream.append("x"), "streaming_mode_mismatch")
	wantCode(t, "stop", stream.stop(slack.MsgOptionChunks(slack.NewMarkdownTextChunk("two"))), "")
	if got := message(t, server, stream.ts).Shown(); got != "one two" {
		t.Errorf("shown %q", got)
	}
}

func TestBlocksFollowStreamText(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	stream := begin(t, client, slack.MsgOptionMarkdownText("above"))
	wantCode(t, "stop", stream.stop(markdown("below")), "")
	if got := message(t, server, stream.ts); got.Shown() != "above\n\nbelow" || got.Blocks == nil {
		t.Errorf("%+v", got)
	}
}

func TestOpenStreamRefusesEditAndDelete(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	stream := begin(t, client, slack.MsgOptionMarkdownText("half"))
	edit := func() error {
		_, _, _, err := client.UpdateMessageContext(t.Context(), channel, stream.ts, slack.MsgOptionText("whole", false))
		return err
	}
	remove := func() error {
		_, _, err := client.DeleteMessageContext(t.Context(), channel, stream.ts)
		return err
	}
	wantCode(t, "edit", edit(), "streaming_state_conflict")
	wantCode(t, "delete", remove(), "cant_delete_message")
	wantCode(t, "stop", stream.stop(), "")
	wantCode(t, "edit a stopped stream", edit(), "")
	if got := message(t, server, stream.ts).Shown(); got != "whole" {
		t.Errorf("shown %q", got)
	}
	wantCode(t, "delete a stopped stream", remove(), "")
}

func TestStreamEndsByAge(t *testing.T) {
	moving := &clock{}
	options := moving.options()
	var events []messageEvent
	options.Echo, options.OnEvent = true, func(e []byte) { events = append(events, readEvent(t, e)) }
	server, client := start(t, options)
	stream := begin(t, client, slack.MsgOptionMarkdownText("one"))
	moving.pass(5*time.Minute - 1)
	wantCode(t, "at the last moment", stream.append(" two"), "")
	moving.pass(1)
	wantCode(t, "after five minutes", stream.append(" three"), "message_not_in_streaming_state")
	if last := events[len(events)-1]; last.SubType != "message_changed" || last.Timestamp == "" {
		t.Errorf("the last event is %+v", last)
	}
	wantCode(t, "stop", stream.stop(slack.MsgOptionMarkdownText(" four")), "message_not_in_streaming_state")
	got := message(t, server, stream.ts)
	if got.Shown() != "one two" || got.Stream != slacktest.Streamed {
		t.Errorf("%+v", got)
	}
	begin(t, client)
	moving.pass(5 * time.Minute)
	events = nil
	if open := server.OpenStreams(); len(open) != 0 {
		t.Errorf("the open streams are %+v", open)
	}
	if len(events) != 1 || events[0].SubType != "message_changed" {
		t.Errorf("the events are %+v", events)
	}
}

func TestStreamEndsByLength(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	stream := begin(t, client, slack.MsgOptionMarkdownText(strings.Repeat("é", 11_999)))
	wantCode(t, "to the limit", stream.append("x"), "")
	wantCode(t, "beyond", stream.append("y"), "message_not_in_streaming_state")
	wantCode(t, "stop", stream.stop(), "message_not_in_streaming_state")
	if got := message(t, server, stream.ts).Shown(); got != strings.Repeat("é", 11_999)+"x" {
		t.Errorf("the stream shows %d bytes", len(got))
	}
	wantCode(t, "too much at once", begin(t, client).append(strings.Repeat("é", 12_001)), "msg_too_long")
}

func TestRefusedStreams(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	nothing := begin(t, client)
	begin := func(channel string, options ...slack.MsgOption) error {
		_, _, err := client.StartStreamContext(t.Context(), channel, options...)
		return err
	}
	team, user := slack.MsgOptionRecipientTeamID("T0TEAM"), slack.MsgOptionRecipientUserID("U1")
	wantCode(t, "no thread", begin(channel, team, user), "invalid_arguments")
	wantCode(t, "no team", begin(channel, under(root), user), "missing_recipient_team_id")
	wantCode(t, "no user", begin(channel, under(root), team), "missing_recipient_user_id")
	wantCode(t, "a direct message", begin("D0ASH", under(root)), "")
	wantCode(t, "no channel", begin("", under(root), team, user), "channel_not_found")
	wantCode(t, "append nothing", nothing.append(""), "markdown_text_or_chunks_required")
	wantCode(t, "stop with nothing", nothing.stop(), "no_text")
	theirs := server.Put(slacktest.Post{Channel: channel, User: "U1", Text: "theirs"}).TS
	wantCode(t, "append to another's", streaming{t, client, theirs}.append("x"), "message_not_owned_by_app")
	wantCode(t, "append to nothing", streaming{t, client, root}.append("x"), "message_not_found")
	wantCode(t, "append to a post", streaming{t, client, post(t, client, "post")}.append("x"), "message_not_in_streaming_state")
}

func TestNoStreams(t *testing.T) {
	for _, code := range []string{"unknown_method", "method_not_supported_for_channel_type"} {
		_, client := start(t, slacktest.Options{NoStreams: code})
		_, _, err := client.StartStreamContext(t.Context(), channel, under(root))
		wantCode(t, "start", err, code)
		wantCode(t, "append", streaming{t, client, root}.append("x"), code)
		wantCode(t, "stop", streaming{t, client, root}.stop(), code)
	}
}

func TestPressStop(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	stream := begin(t, client, slack.MsgOptionMarkdownText("one"))
	server.PressStop(channel, stream.ts)
	wantCode(t, "append", stream.append("x"), "stopped_by_user")
	wantCode(t, "stop", stream.stop(), "")
}

func TestOnPostAndOnChange(t *testing.T) {
	var seen []string
	see := func(p slacktest.Post) { seen = append(seen, p.Shown()) }
	_, client := start(t, slacktest.Options{OnPost: see, OnChange: see})
	stream := begin(t, client)
	wantCode(t, "append", stream.append("a"), "")
	wantCode(t, "stop", stream.stop(slack.MsgOptionMarkdownText("b")), "")
	_, _, _, err := client.UpdateMessageContext(t.Context(), channel, stream.ts, slack.MsgOptionText("c", false))
	wantCode(t, "update", err, "")
	_, _, err = client.DeleteMessageContext(t.Context(), channel, stream.ts)
	wantCode(t, "delete", err, "")
	if diff := cmp.Diff([]string{"", "a", "ab", "c", ""}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestDeleteOpenStream(t *testing.T) {
	moving := &clock{}
	server, client := start(t, moving.options())
	stream := begin(t, client, slack.MsgOptionMarkdownText("one"))
	server.Delete(channel, stream.ts)
	moving.pass(5 * time.Minute)
	if open := server.OpenStreams(); len(open) != 0 {
		t.Errorf("the open streams are %+v", open)
	}
	wantCode(t, "append", stream.append("x"), "message_not_found")
	wantCode(t, "stop", stream.stop(), "message_not_found")
}
