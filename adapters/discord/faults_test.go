package discord_test

import (
	"strings"
	"testing"

	"parley/adapters/discord"
	"parley/ingest/event"
)

func TestUnreadableBody(t *testing.T) {
	seen := map[string]string{}
	for _, body := range []string{"", " ", "null", "true", "12", `"text"`, `[{"op":0}]`, "{", `{"op":0}{}`, "{'op':0}", "\xff\xfe"} {
		k := keysOf(event.Envelope{Workspace: "acme", Body: []byte(body)}, known)
		if k.Result == nil || k.Result.Disposition != event.Dead || !strings.HasPrefix(k.Result.Error, "body: ") {
			t.Errorf("the result of %q is %+v", body, k.Result)
		}
		if other, taken := seen[k.Dedupe]; taken {
			t.Errorf("%q and %q have the same key", body, other)
		}
		seen[k.Dedupe] = body
		if _, err := (discord.Normalizer{}).Normalize(t.Context(), event.Envelope{Body: []byte(body)}, known); err == nil {
			t.Errorf("Normalize accepts %q", body)
		}
	}
}

// TestFaults checks that one error names every faulty field that the adapter reads.
func TestFaults(t *testing.T) {
	reaction := fields{"user_id": sam, "channel_id": room, "message_id": sentID, "emoji": fields{"name": "👍"}}
	ask := fields{"id": sentID, "type": 2, "channel_id": room, "data": fields{"type": 1, "name": "ask"}}
	tests := map[string]struct {
		frame fields
		want  []string
	}{
		"no data":          {fields{"op": 0, "t": "MESSAGE_CREATE"}, []string{"d"}},
		"data is a list":   {frame("MESSAGE_DELETE", []string{}), []string{"d"}},
		"nothing":          {frame("MESSAGE_CREATE", fields{}), []string{"d.id", "d.channel_id", "d.author"}},
		"ids":              {frame("MESSAGE_CREATE", posted("").with(fields{"id": 5, "channel_id": "x", "guild_id": "", "webhook_id": "-1"})), []string{"d.id", "d.channel_id", "d.guild_id", "d.webhook_id"}},
		"text":             {frame("MESSAGE_CREATE", posted("").with(fields{"content": 5, "timestamp": "noon", "edited_timestamp": true})), []string{"d.content", "d.timestamp", "d.edited_timestamp"}},
		"numbers":          {frame("MESSAGE_CREATE", posted("").with(fields{"type": "0", "flags": 1.5, "channel_type": false})), []string{"d.type", "d.flags", "d.channel_type"}},
		"author":           {frame("MESSAGE_CREATE", posted("").with(fields{"author": fields{"username": 5, "bot": 1, "global_name": []int{}}})), []string{"d.author.id", "d.author.username", "d.author.bot", "d.author.global_name"}},
		"nickname":         {frame("MESSAGE_CREATE", posted("").with(fields{"member": fields{"nick": 5}})), []string{"d.member.nick"}},
		"mentions":         {frame("MESSAGE_CREATE", posted("").with(fields{"mentions": []any{person(sam, "sam"), fields{"id": true}}})), []string{"d.mentions[1].id"}},
		"files":            {frame("MESSAGE_CREATE", posted("").with(fields{"attachments": []fields{{"filename": 1, "size": "1", "content_type": 1}}})), []string{"d.attachments[0].id", "d.attachments[0].filename", "d.attachments[0].size", "d.attachments[0].content_type"}},
		"stickers":         {frame("MESSAGE_CREATE", posted("").with(fields{"sticker_items": fields{}})), []string{"d.sticker_items"}},
		"poll":             {frame("MESSAGE_CREATE", posted("").with(fields{"poll": fields{"question": "why?", "answers": []fields{{"poll_media": fields{"text": 5}}}}})), []string{"d.poll.question", "d.poll.answers[0].poll_media.text"}},
		"reference":        {frame("MESSAGE_CREATE", posted("").with(fields{"message_reference": fields{"type": "0", "message_id": 5}})), []string{"d.message_reference.type", "d.message_reference.message_id"}},
		"quoted message":   {frame("MESSAGE_CREATE", posted("").with(replying("31", fields{"content": 5, "author": fields{"id": sam, "bot": "no"}}))), []string{"d.referenced_message.content", "d.referenced_message.author.bot"}},
		"forwarded":        {frame("MESSAGE_CREATE", posted("").with(fields{"message_snapshots": []fields{{"message": fields{"content": 5}}}})), []string{"d.message_snapshots[0].message.content"}},
		"edit":             {frame("MESSAGE_UPDATE", fields{"content": "x", "edited_timestamp": "late"}), []string{"d.id", "d.channel_id", "d.edited_timestamp"}},
		"endless fraction": {frame("MESSAGE_UPDATE", edited("x").with(fields{"edited_timestamp": "2026-09-21T14:05:00." + strings.Repeat("1", 50) + "Z"})), []string{"d.edited_timestamp"}},
		"delete":           {frame("MESSAGE_DELETE", fields{"id": "x"}), []string{"d.id", "d.channel_id"}},
		"bulk delete":      {frame("MESSAGE_DELETE_BULK", fields{"ids": []string{}, "channel_id": room}), []string{"d.ids"}},
		"no bulk":          {frame("MESSAGE_DELETE_BULK", fields{"channel_id": room}), []string{"d.ids"}},
		"bulk is text":     {frame("MESSAGE_DELETE_BULK", fields{"ids": "31", "channel_id": room}), []string{"d.ids"}},
		"an id in bulk":    {frame("MESSAGE_DELETE_BULK", fields{"ids": []string{"31", ""}, "channel_id": room}), []string{"d.ids[1]"}},
		"reaction":         {frame("MESSAGE_REACTION_ADD", fields{"emoji": fields{}}), []string{"d.user_id", "d.channel_id", "d.message_id", "d.emoji.name"}},
		"no emoji":         {frame("MESSAGE_REACTION_REMOVE", reaction.with(fields{"emoji": nil})), []string{"d.emoji"}},
		"sequence":         {frame("MESSAGE_REACTION_ADD", reaction).with(fields{"session_id": "abc", "s": "7"}), []string{"s"}},
		"user":             {frame("INTERACTION_CREATE", ask), []string{"d.user"}},
		"member":           {frame("INTERACTION_CREATE", ask.with(fields{"member": 5})), []string{"d.member"}},
		"session":          {frame("MESSAGE_REACTION_ADD", reaction).with(fields{"session_id": 5}), []string{"session_id"}},
		"endless session":  {frame("MESSAGE_REACTION_ADD", reaction).with(fields{"session_id": strings.Repeat("a", 200)}), []string{"session_id"}},
	}
	for name, test := range tests {
		k := keysOf(envelope(t, test.frame), known)
		if k.Result == nil || k.Result.Disposition != event.Dead {
			t.Errorf("%s: the result is %+v, want a dead letter", name, k.Result)
			continue
		}
		_, err := discord.Normalizer{}.Normalize(t.Context(), envelope(t, test.frame), known)
		if err == nil || !strings.HasSuffix(err.Error(), k.Result.Error) {
			t.Errorf("%s: Normalize returns %v, Keys %q", name, err, k.Result.Error)
		}
		faults := strings.Split(k.Result.Error, "; ")
		if len(faults) != len(test.want) {
			t.Errorf("%s: the faults are %q, want one for each of %q", name, faults, test.want)
		}
		for _, field := range test.want {
			if !strings.Contains("; "+k.Result.Error, "; "+field+": ") {
				t.Errorf("%s: %q does not name %s", name, k.Result.Error, field)
			}
		}
	}
}

// TestUnreadFields checks that a field that the adapter does not read may have any type, and
// that null counts as missing.
func TestUnreadFields(t *testing.T) {
	data := posted("hello").with(fields{
		"embeds": "none", "components": 5, "nonce": []int{1}, "from_the_future": fields{"a": 1},
		"reactions": true, "webhook_id": null, "poll": null, "member": null,
	})
	if got := created(t, data).Content; got != "hello" {
		t.Errorf("the content is %q", got)
	}
}
