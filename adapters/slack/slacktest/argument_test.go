package slacktest_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

func TestInvalidArguments(t *testing.T) {
	server, client := town(t, slacktest.Options{})
	stream := begin(t, client).ts
	hi := server.Put(slacktest.Post{Channel: "C1", User: "U1", Text: "hi"}).TS
	for i := range 50 {
		server.React("C1", hi, "U1", fmt.Sprint("emoji-", i))
	}
	for _, c := range []struct{ call, code string }{
		{"poems.write", "unknown_method"},
		{"chat.postMessage text=x", "channel_not_found"},
		{"chat.postEphemeral channel=C1 text=x", "invalid_arguments"},
		{"chat.postEphemeral user=U1 text=x", "channel_not_found"},
		{"chat.postEphemeral channel=C1 user=U1", "no_text"},
		{"chat.postEphemeral channel=C2 user=U1 text=x", "not_in_channel"},
		{"chat.postMessage channel=C1 text=x metadata={}", ""},
		{"chat.postMessage channel=C1 text=x metadata=x", "invalid_metadata_format"},
		{"chat.postMessage channel=C1 attachments=[]", "no_text"},
		{"chat.postMessage channel=C1 attachments=[{}]", ""},
		{"chat.startStream channel=C2 thread_ts=1 recipient_team_id=T recipient_user_id=U", "not_in_channel"},
		{"chat.startStream channel=D1 thread_ts=1 chunks=x", "invalid_chunks"},
		{"chat.startStream channel=D1 thread_ts=1 chunks=[{\"type\":\"poem\"}]", "invalid_chunks"},
		{"chat.startStream channel=D1 thread_ts=1 chunks=[] markdown_text=x", "cannot_provide_both_markdown_text_and_chunks"},
		{"chat.stopStream channel=C0ROOM blocks=x ts=" + stream, "invalid_blocks_format"},
		{"chat.stopStream channel=C0ROOM metadata=x ts=" + stream, "invalid_metadata_format"},
		{"chat.appendStream channel=C0ROOM ts=" + stream + " markdown_text=" + strings.Repeat("x", 12_000), ""},
		{"conversations.history", "channel_not_found"},
		{"conversations.history channel=C1 latest=x", "invalid_ts_latest"},
		{"conversations.history channel=C1 cursor=bmV4dA==", "invalid_cursor"},
		{"conversations.replies channel=C1 ts=1600000000.000001", "thread_not_found"},
		{"conversations.info channel=C9", "channel_not_found"},
		{"conversations.members channel=C9", "channel_not_found"},
		{"reactions.add name=eyes channel=C1", "no_item_specified"},
		{"reactions.add name=eyes timestamp=" + hi, "no_item_specified"},
		{"reactions.add name=eyes channel=C1 timestamp=" + hi, "too_many_emoji"},
		{"reactions.get channel=C1 timestamp=1600000000.000001", "message_not_found"},
		{"assistant.threads.setStatus channel_id=C1 thread_ts=1", "invalid_arguments"},
		{"assistant.threads.setStatus channel_id=C1 thread_ts=x status=x", "invalid_thread_ts"},
		{"assistant.threads.setStatus thread_ts=1 status=x", "channel_not_found"},
		{"assistant.threads.setTitle channel_id=D1 thread_ts=1", "invalid_arguments"},
		{"assistant.threads.setTitle thread_ts=1 title=x", "channel_not_found"},
		{"assistant.threads.setTitle channel_id=D1 title=x thread_ts=x", "invalid_thread_ts"},
		{"assistant.threads.setSuggestedPrompts channel_id=D1 prompts=[{\"title\":\"x\"}]", "invalid_arguments"},
		{"assistant.threads.setSuggestedPrompts channel_id=D1 prompts=[{\"title\":\"x\",\"message\":\"y\"}]", ""},
		{"files.info file=F9", "file_not_found"},
		{"files.getUploadURLExternal length=1", "invalid_arguments"},
		{"files.getUploadURLExternal filename=x length=0", "missing_argument"},
		{"files.completeUploadExternal files=[]", "invalid_arguments"},
		{"files.completeUploadExternal files=[{\"id\":\"F9\"}] channel_id=C1", "file_not_found"},
		{"users.info user=U9", "user_not_found"},
		{"bots.info bot=B9", "bot_not_found"},
		{"team.info team=T9", "team_not_found"},
	} {
		fields := strings.Fields(c.call)
		if got := refused(t, server, fields[0], fields[1:]...); got != c.code {
			t.Errorf("%.80s: %q, want %q", c.call, got, c.code)
		}
	}
}
