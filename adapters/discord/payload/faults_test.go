package payload_test

import (
	"strings"
	"testing"

	"parley/adapters/discord/payload"
	"parley/ingest/event"

	"github.com/google/go-cmp/cmp"
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
		if _, err := (payload.Normalizer{}).Normalize(t.Context(), event.Envelope{Body: []byte(body)}, known); err == nil {
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
		"text":             {frame("MESSAGE_CREATE", posted("").with(fields{"content": 5, "edited_timestamp": true})), []string{"d.content", "d.edited_timestamp"}},
		"numbers":          {frame("MESSAGE_CREATE", posted("").with(fields{"type": "one", "flags": []int{}, "channel_type": false})), []string{"d.type", "d.flags", "d.channel_type"}},
		"author":           {frame("MESSAGE_CREATE", posted("").with(fields{"author": fields{"bot": 1}})), []string{"d.author.id", "d.author.bot"}},
		"mentions":         {frame("MESSAGE_CREATE", posted("").with(fields{"mentions": []any{person(sam, "sam"), fields{"id": true}}})), []string{"d.mentions[1].id"}},
		"files":            {frame("MESSAGE_CREATE", posted("").with(fields{"attachments": []fields{{"filename": "x"}}})), []string{"d.attachments[0].id"}},
		"stickers":         {frame("MESSAGE_CREATE", posted("").with(fields{"sticker_items": fields{}})), []string{"d.sticker_items"}},
		"poll":             {frame("MESSAGE_CREATE", posted("").with(fields{"poll": fields{"question": "why?", "answers": []fields{{"poll_media": fields{"text": 5}}}}})), []string{"d.poll.question", "d.poll.answers[0].poll_media.text"}},
		"reference":        {frame("MESSAGE_CREATE", posted("").with(fields{"message_reference": fields{"type": true, "message_id": 5}})), []string{"d.message_reference.type", "d.message_reference.message_id"}},
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
		"sequence":         {frame("MESSAGE_REACTION_ADD", reaction).with(fields{"session_id": "abc", "s": "seven"}), []string{"s"}},
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
		_, err := payload.Normalizer{}.Normalize(t.Context(), envelope(t, test.frame), known)
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

// TestOptionalFields checks that a fault in a field without which a message keeps its meaning is no
// fault of the message.
func TestOptionalFields(t *testing.T) {
	data := posted("hello").with(fields{
		"timestamp": "noon", "author": fields{"id": sam, "username": 5, "global_name": []int{}}, "member": fields{"nick": true},
		"attachments":   []fields{{"id": "77", "filename": 1, "size": "1.5", "content_type": 1}},
		"sticker_items": []fields{{"id": "78", "name": false, "format_type": "?"}},
	}).with(replying("31", fields{"content": 5, "author": fields{"id": sam, "bot": "no"}}))
	got := created(t, data)
	if got.Content != "hello" || got.Metadata.SenderDisplayName != sam || got.SentAt.IsZero() || got.ReplyTo != "31" {
		t.Errorf("the message is %+v", got)
	}
	if diff := cmp.Diff([]event.Attachment{{ID: "77", Size: 1}, {ID: "78"}}, got.Attachments); diff != "" {
		t.Error(diff)
	}
}

// TestUnreadFields checks that a field that the adapter does not read may have any type, and
// that null counts as missing.
func TestUnreadFields(t *testing.T) {
	data := posted("hello").with(fields{
		"embeds": "none", "components": 5, "nonce": []int{1}, "from_the_future": fields{"a": 1},
		"reactions": true, "webhook_id": null, "poll": null, "member": null,
		"message_snapshots": []fields{{"message": fields{"content": "before", "type": "0", "flags": "none", "edited_timestamp": 5, "timestamp": "then"}}},
	})
	if got := created(t, data).Content; got != "hello" {
		t.Errorf("the content is %q", got)
	}
}
