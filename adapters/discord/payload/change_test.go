package payload_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
)

func TestEdit(t *testing.T) {
	e := normalize(t, known, "MESSAGE_UPDATE", edited("better"))
	if diff := cmp.Diff([]string{sentID}, e.Targets); diff != "" || e.Kind != event.KindEdit {
		t.Errorf("the event is a %s of %q", e.Kind, e.Targets)
	}
	want := created(t, posted("better"))
	want.EditedAt = time.Date(2026, 9, 21, 14, 5, 0, 766_195_000, time.UTC)
	want.Revision, want.Dated, want.AllFiles = "2026-09-21T14:05:00.766Z", 24, true
	if diff := cmp.Diff(want, e.Message, sameMetadata); diff != "" {
		t.Errorf("the edit does not carry the complete edited message: %s", diff)
	}
	if got := created(t, posted("never edited")).Revision; got != "" {
		t.Errorf("the revision of an unedited message is %q", got)
	}
}

// TestEditRemovesFiles: an update lists all files that the message has now, unless it has no list.
func TestEditRemovesFiles(t *testing.T) {
	if !normalize(t, known, "MESSAGE_UPDATE", edited("better")).Message.AllFiles {
		t.Error("an empty list removes no file")
	}
	if normalize(t, known, "MESSAGE_UPDATE", edited("better").with(fields{"attachments": nil})).Message.AllFiles {
		t.Error("an update without a list removes files")
	}
}

// TestRevisionIsInMilliseconds checks that an edit keeps its revision when Discord adds a
// preview. The update with the preview gives edited_timestamp with less precision.
func TestRevisionIsInMilliseconds(t *testing.T) {
	revision := func(at string) string {
		return normalize(t, known, "MESSAGE_UPDATE", edited("x").with(fields{"edited_timestamp": at})).Message.Revision
	}
	first := revision("2026-09-21T14:05:00.766195+00:00")
	for _, same := range []string{"2026-09-21T14:05:00.766000+00:00", "2026-09-21T14:05:00.766Z", "2026-09-21T16:05:00.766+02:00"} {
		if got := revision(same); got != first {
			t.Errorf("%s has the revision %q, want %q", same, got, first)
		}
	}
	if revision("2026-09-21T14:05:00.767000+00:00") == first {
		t.Error("two edits have the same revision")
	}
}

func TestEditWithoutAuthor(t *testing.T) {
	m := normalize(t, known, "MESSAGE_UPDATE", fields{
		"id": sentID, "channel_id": room, "content": "<@900> better", "edited_timestamp": revised,
	}).Message
	if m.Content != "<@900> better" || m.Addressed != event.AddressedMention || m.Revision == "" || m.Own {
		t.Errorf("the edit is %+v", m)
	}
	want := event.Metadata{Source: "discord", ChannelExternalID: room}
	if diff := cmp.Diff(want, m.Metadata, sameMetadata); diff != "" {
		t.Errorf("the sender is not empty: %s", diff)
	}
}

// TestUpdateWithoutAuthorID checks the update that Discord sends when a thread is opened on a
// message.
func TestUpdateWithoutAuthorID(t *testing.T) {
	for _, author := range []fields{{}, {"id": nil}} {
		e := normalize(t, known, "MESSAGE_UPDATE", fields{
			"id": sentID, "channel_id": room, "guild_id": "1", "flags": 32, "author": author, "thread": fields{"id": sentID, "name": "tomatoes"},
		})
		if e.Kind != event.KindEdit || e.Ignored != event.ReasonNoChange {
			t.Errorf("author %v: %+v", author, e)
		}
	}
}

func TestDelete(t *testing.T) {
	one := normalize(t, known, "MESSAGE_DELETE", fields{"id": "31", "channel_id": room})
	if diff := cmp.Diff(event.Event{Kind: event.KindDelete, Targets: []string{"31"}}, one); diff != "" {
		t.Error(diff)
	}
	bulk := normalize(t, known, "MESSAGE_DELETE_BULK", fields{"ids": []string{"33", "31"}, "channel_id": room})
	if diff := cmp.Diff(event.Event{Kind: event.KindDelete, Targets: []string{"33", "31"}}, bulk); diff != "" {
		t.Error(diff)
	}
}

func TestReaction(t *testing.T) {
	thumb, sprout := fields{"id": nil, "name": "👍"}, fields{"id": "6", "name": "sprout", "animated": false}
	tests := []struct {
		name  string
		emoji fields
		want  event.Reaction
	}{
		{"MESSAGE_REACTION_ADD", thumb, event.Reaction{Emoji: "👍", SenderID: "discord:202", MentionToken: "<@202>"}},
		{"MESSAGE_REACTION_ADD", sprout, event.Reaction{Emoji: "sprout:6", SenderID: "discord:202", MentionToken: "<@202>"}},
		{"MESSAGE_REACTION_ADD", sprout.with(fields{"name": nil}), event.Reaction{Emoji: "6", SenderID: "discord:202", MentionToken: "<@202>"}},
		{"MESSAGE_REACTION_REMOVE", thumb, event.Reaction{Emoji: "👍", SenderID: "discord:202", MentionToken: "<@202>", Removed: true}},
		{"MESSAGE_REACTION_REMOVE_EMOJI", sprout, event.Reaction{Emoji: "sprout:6", Removed: true, All: true}},
		{"MESSAGE_REACTION_REMOVE_ALL", nil, event.Reaction{Removed: true, All: true}},
	}
	for _, test := range tests {
		data := fields{"user_id": sam, "channel_id": room, "message_id": "31", "emoji": test.emoji}
		want := event.Event{Kind: event.KindReaction, Targets: []string{"31"}, Reaction: &test.want}
		if diff := cmp.Diff(want, normalize(t, known, test.name, data)); diff != "" {
			t.Errorf("%s %v: %s", test.name, test.emoji, diff)
		}
	}
}

// TestReactionSender checks that a name and a type in the payload are the sender's.
func TestReactionSender(t *testing.T) {
	for name, test := range map[string]struct {
		member fields
		want   event.Reaction
	}{
		"nickname":  {fields{"nick": "Sammy", "user": person(sam, "sam")}, event.Reaction{SenderName: "Sammy", SenderType: event.Human}},
		"user name": {fields{"nick": nil, "user": person(sam, "sam")}, event.Reaction{SenderName: "sam", SenderType: event.Human}},
		"bot":       {fields{"user": person(sam, "ci").with(fields{"bot": true})}, event.Reaction{SenderName: "ci", SenderType: event.Bot}},
		"no member": {nil, event.Reaction{}},
	} {
		data := fields{"user_id": sam, "channel_id": room, "message_id": "31", "emoji": fields{"name": "👍"}, "member": test.member}
		got := normalize(t, known, "MESSAGE_REACTION_ADD", data).Reaction
		if got.SenderName != test.want.SenderName || got.SenderType != test.want.SenderType {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestOwnReaction(t *testing.T) {
	data := fields{"user_id": bot, "channel_id": room, "message_id": "31", "emoji": fields{"name": "⏳"}}
	if got := normalize(t, known, "MESSAGE_REACTION_ADD", data).Ignored; got != event.ReasonOwnMessage {
		t.Errorf("the reason for our own reaction is %q", got)
	}
	if got := normalize(t, unknown, "MESSAGE_REACTION_ADD", data).Ignored; got != "" {
		t.Errorf("the reaction is ignored as %q before our identity is known", got)
	}
}
