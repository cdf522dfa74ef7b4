package payload_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/adapters"
	"parley/adapters/slack/payload"
	"parley/ingest/event"

	"github.com/google/go-cmp/cmp"
)

func normalized(t testing.TB, body any, directory adapters.Directory) event.Event {
	t.Helper()
	out, err := payload.Normalizer{}.Normalize(t.Context(), envelopeOf(t, body), directory)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// messageOf returns the message of a body.
func messageOf(t testing.TB, body any, directory adapters.Directory) *event.Message {
	t.Helper()
	out := normalized(t, body, directory)
	if out.Message == nil {
		t.Fatalf("no message: %+v", out)
	}
	return out.Message
}

func TestNormalizeMessage(t *testing.T) {
	directory := fakeDirectory{self: us, users: map[string]adapters.User{"UMARA0001": {DisplayName: "Mara"}}}
	got := messageOf(t, eventCallback(messageEvent(" <@UPARLEY01> a &lt; b ", object{"channel_type": "channel"})), directory)
	want := &event.Message{
		ExternalID: "C1/1750000000.000100",
		Thread:     "slack:acme:C1:1750000000.000100",
		Channel:    event.Channel{ID: "C1", Type: event.ChannelRoom},
		Content:    " <@UPARLEY01> a < b ",
		Metadata: event.Metadata{
			Source: "slack", SenderID: "slack:UMARA0001", SenderDisplayName: "Mara", SenderType: event.Human,
			ChannelExternalID: "C1", MentionToken: "<@UMARA0001>",
		},
		SentAt:    time.Date(2025, 6, 15, 15, 6, 40, 100_000, time.UTC),
		Addressed: event.AddressedMention,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(event.Metadata{})); diff != "" {
		t.Error(diff)
	}
}

// TestForwardOfAnAppIsNotItsText: an app may leave the text empty and write into attachments,
// but a forwarded message among them has another author.
func TestForwardOfAnAppIsNotItsText(t *testing.T) {
	got := messageOf(t, messageEvent("", object{"user": "", "bot_id": "B1", "attachments": []object{
		{"text": "its own words"}, {"is_share": true, "author_id": "U9", "channel_id": "C9", "text": "the words of U9"}, {"is_share": true, "author_id": "B2", "text": "the words of a bot"},
		{"is_share": true, "author_id": "U3", "text": "the words of a bot with a user"},
	}}), fakeDirectory{self: us, users: map[string]adapters.User{"U3": {DisplayName: "Build", IsBot: true}}})
	want := []event.Quote{{SenderID: "slack:U9", SenderType: event.Human, MentionToken: "<@U9>", Channel: "C9", Content: "the words of U9"}, {SenderID: "slack:B2", SenderType: event.Bot, MentionToken: "<@B2>", Content: "the words of a bot"},
		{SenderID: "slack:U3", SenderType: event.Bot, MentionToken: "<@U3>", Content: "the words of a bot with a user"}}
	if diff := cmp.Diff(want, got.Forwarded); got.Content != "its own words" || diff != "" {
		t.Errorf("content %q, forwarded %s", got.Content, diff)
	}
}

// TestForwardOfOurOwnMessage: Slack names the author of a bot's message by its bot or its user.
func TestForwardOfOurOwnMessage(t *testing.T) {
	for _, author := range []string{us.UserID, us.BotID} {
		got := messageOf(t, messageEvent("", object{"attachments": []object{{"is_share": true, "author_id": author, "text": "our words"}}}), fakeDirectory{self: us})
		if len(got.Forwarded) != 1 || !got.Forwarded[0].Own {
			t.Errorf("%s: %+v", author, got.Forwarded)
		}
	}
}

func TestVoiceClip(t *testing.T) {
	clip := func(more object) object {
		file := object{"id": "F1", "subtype": "slack_audio", "filetype": "webm", "mimetype": "video/webm", "mode": "hosted"}
		for key, value := range more {
			file[key] = value
		}
		return messageEvent("", object{"subtype": "file_share", "files": []object{file}})
	}
	for name, c := range map[string]struct {
		more object
		want event.Attachment
	}{
		"as a video": {object{"duration_ms": 3200}, event.Attachment{ID: "F1", Name: "audio_message.webm", MimeType: "audio/webm", Type: event.TypeVoice, DurationMS: 3200}},
		"as sound":   {object{"mimetype": "audio/mp4", "name": "a.m4a", "duration_ms": 1.5}, event.Attachment{ID: "F1", Name: "a.m4a", MimeType: "audio/mp4", Type: event.TypeVoice, DurationMS: 1}},
		"a video":    {object{"subtype": "slack_video", "name": "a.webm", "duration_ms": 9}, event.Attachment{ID: "F1", Name: "a.webm", MimeType: "video/webm", DurationMS: 9}},
		"odd":        {object{"name": "a", "duration_ms": -7}, event.Attachment{ID: "F1", Name: "a", MimeType: "audio/webm", Type: event.TypeVoice}},
	} {
		got := messageOf(t, clip(c.more), fakeDirectory{self: us}).Attachments
		if diff := cmp.Diff([]event.Attachment{c.want}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestFilesThatNobodySees: a file that is gone, hidden or unknown is no file of a message, of a
// quotation or of a forward. An edit tells the journal which file is gone.
func TestFilesThatNobodySees(t *testing.T) {
	seen := object{"id": "F1", "name": "a.png", "mode": "hosted"}
	for name, c := range map[string]struct {
		file object
		want bool
	}{
		"deleted":              {object{"id": "F2", "mode": "tombstone", "name": "a"}, false},
		"hidden by the plan":   {object{"id": "F2", "mode": "hidden_by_limit", "name": "a"}, false},
		"not found":            {object{"id": "F2", "file_access": "file_not_found", "name": "a"}, false},
		"unknown":              {object{"id": "F2", "mode": "hosted", "size": 7}, false},
		"without an id":        {object{"name": "a"}, false},
		"of another team":      {object{"id": "F2", "file_access": "check_file_info"}, true},
		"not for us":           {object{"id": "F2", "file_access": "access_denied"}, true},
		"with a title alone":   {object{"id": "F2", "title": "a"}, true},
		"with a type alone":    {object{"id": "F2", "mimetype": "image/png"}, true},
		"with its filetype":    {object{"id": "F2", "filetype": "png"}, true},
		"an unfinished upload": {object{"id": "F2", "name": "a", "mode": "hosted"}, true},
	} {
		want := []string{"F1"}
		if c.want {
			want = append(want, "F2")
		}
		list := []object{seen, c.file}
		check := func(where string, files []event.Attachment) {
			t.Helper()
			var got []string
			for _, file := range files {
				got = append(got, file.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: %s", name, where, diff)
			}
		}
		check("message", messageOf(t, messageEvent("", object{"files": list}), fakeDirectory{self: us}).Attachments)
		forward := messageOf(t, messageEvent("", object{"attachments": []object{{"is_share": true, "files": list[:1], "attachments": []object{{"is_share": true, "files": list[1:]}}}}}), fakeDirectory{self: us})
		check("forward", forward.Forwarded[0].Attached)
		pressed := messageOf(t, object{"type": "message_action", "callback_id": "ask", "trigger_id": "1.2", "user": object{"id": "UMARA0001"}, "channel": object{"id": "C1"},
			"message": messageEvent("", object{"files": list})}, fakeDirectory{self: us})
		if pressed.Quoted.Files != len(want) {
			t.Errorf("%s: %d files of a quotation", name, pressed.Quoted.Files)
		}
		edit := messageOf(t, object{"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1750000010.000000",
			"message": messageEvent("now", object{"files": list}), "previous_message": messageEvent("before", object{"files": list})}, fakeDirectory{self: us})
		if n := len(edit.Attachments); n != 2 || edit.Attachments[1].Gone == c.want {
			t.Errorf("%s: an edit lists %+v", name, edit.Attachments)
		}
	}
}

// TestFilesBeingProcessed: a message waits for a file whose type Slack does not know yet, and for the words of a clip. The
// change that brings them, or brings none, ends the wait.
func TestFilesBeingProcessed(t *testing.T) {
	state := func(file object) object {
		return messageEvent("look", object{"subtype": "file_share", "files": []object{file}})
	}
	clip := func(status string) object {
		return object{"id": "F1", "name": "a.m4a", "mode": "hosted", "mimetype": "audio/mp4", "subtype": "slack_audio", "transcription": object{"status": status}}
	}
	for name, c := range map[string]struct{ raw, done object }{
		"a type":   {object{"id": "F1", "name": "a.png", "mode": "hosted", "size": 9}, object{"id": "F1", "name": "a.png", "mode": "hosted", "mimetype": "image/png", "size": 9}},
		"words":    {clip("processing"), clip("complete")},
		"no words": {clip("processing"), clip("failed")},
	} {
		if m := messageOf(t, state(c.raw), fakeDirectory{self: us}); !m.AwaitsFiles || len(m.Attachments) != 1 {
			t.Errorf("%s that is missing: %+v", name, m)
		}
		if m := messageOf(t, state(c.done), fakeDirectory{self: us}); m.AwaitsFiles {
			t.Errorf("%s: a whole file is waited for", name)
		}
		change := object{"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1750000010.000000", "message": state(c.done), "previous_message": state(c.raw)}
		if m := messageOf(t, change, fakeDirectory{self: us}); m.AwaitsFiles || m.Revision == "" {
			t.Errorf("%s: the change: %+v", name, m)
		}
	}
}

// everyUser is a directory that knows every user. The name shows that it was asked.
type everyUser struct{ fakeDirectory }

func (everyUser) User(_ context.Context, id string) (adapters.User, bool) {
	return adapters.User{DisplayName: "asked for " + id}, true
}

func TestPayloadNamesAreNotLookedUp(t *testing.T) {
	for _, tt := range []struct {
		about string
		more  object
		want  string
	}{
		{"a person of a shared channel", object{"user_profile": object{"display_name": "Ines", "real_name": "Inês Prado"}}, "Ines"},
		{"a person without a display name", object{"user_profile": object{"display_name": " ", "real_name": "Inês Prado"}}, "Inês Prado"},
		{"a profile without a name", object{"user_profile": object{}}, "asked for UMARA0001"},
		{"a bot's name for this message", object{"bot_id": "B1", "username": "night build", "bot_profile": object{"name": "build"}}, "night build"},
		{"a bot's name", object{"bot_id": "B1", "bot_profile": object{"name": "build"}}, "build"},
		{"a bot's user", object{"bot_id": "B1"}, "asked for UMARA0001"},
		{"a bot without a user", object{"bot_id": "B1", "user": nil}, "asked for B1"},
		{"a person", nil, "asked for UMARA0001"},
	} {
		got := messageOf(t, eventCallback(messageEvent("hi", tt.more)), everyUser{fakeDirectory{self: us}})
		if got.Metadata.SenderDisplayName != tt.want {
			t.Errorf("%s is %q, want %q", tt.about, got.Metadata.SenderDisplayName, tt.want)
		}
	}
}

func TestSenderType(t *testing.T) {
	directory := fakeDirectory{self: us, users: map[string]adapters.User{"UGREETER1": {DisplayName: "Greeter", IsBot: true}}}
	for _, tt := range []struct {
		about  string
		more   object
		sender string
		kind   event.SenderType
		alt    string
	}{
		{"a person", nil, "slack:UMARA0001", event.Human, ""},
		{"a bot with a user", object{"bot_id": "B1"}, "slack:B1", event.Bot, "UMARA0001"},
		{"an integration", object{"user": nil, "bot_id": "B1", "subtype": "bot_message"}, "slack:B1", event.Bot, ""},
		{"an integration with a name alone", object{"user": nil, "username": "cron", "subtype": "bot_message"}, "slack:cron", event.Bot, ""},
		{"Slack's own bot", object{"user": "USLACKBOT"}, "slack:USLACKBOT", event.Bot, ""},
		{"a user that the directory knows for a bot", object{"user": "UGREETER1"}, "slack:UGREETER1", event.Bot, ""},
	} {
		m := messageOf(t, eventCallback(messageEvent("hi", tt.more)), directory)
		got := m.Metadata
		if got.SenderID != tt.sender || got.SenderType != tt.kind || m.AltSenderID != tt.alt {
			t.Errorf("%s: %s or %q, a %s; want %s or %q, a %s", tt.about, got.SenderID, m.AltSenderID, got.SenderType, tt.sender, tt.alt, tt.kind)
		}
		if hasToken := got.MentionToken != ""; hasToken != (tt.kind == event.Human) {
			t.Errorf("%s: mention token %q", tt.about, got.MentionToken)
		}
	}
}

// TestUsernameCannotForgeAnID: an integration without an id may choose a name that
// looks like another's id.
func TestUsernameCannotForgeAnID(t *testing.T) {
	for name, id := range map[string]string{"cron": "slack:cron", "UMARA0001": "slack:name:UMARA0001", "B024BE7LH": "slack:name:B024BE7LH"} {
		m := messageOf(t, eventCallback(messageEvent("x", object{"user": "", "subtype": "bot_message", "username": name})), fakeDirectory{self: us}).Metadata
		if m.SenderID != id || m.SenderDisplayName != name || m.SenderType != event.Bot {
			t.Errorf("%s: %s, %s, %s", name, m.SenderID, m.SenderDisplayName, m.SenderType)
		}
	}
}

func TestAddressed(t *testing.T) {
	inDirect := object{"channel": "D1", "channel_type": "im"}
	for _, tt := range []struct {
		about string
		body  object
		self  event.Self
		want  event.Addressed
	}{
		{"a mention", eventCallback(messageEvent("hi <@UPARLEY01|parley>", nil)), us, event.AddressedMention},
		{"somebody else's mention", eventCallback(messageEvent("hi <@UTOMAS001>", nil)), us, event.AddressedNone},
		{"a typed mention", eventCallback(messageEvent("hi &lt;@UPARLEY01&gt;", nil)), us, event.AddressedNone},
		{"an app_mention", messageEvent("hi", object{"type": "app_mention"}), event.Self{}, event.AddressedMention},
		{"a direct message", eventCallback(messageEvent("hi", inDirect)), us, event.AddressedDirect},
		{"a group direct message", eventCallback(messageEvent("hi", object{"channel_type": "mpim"})), us, event.AddressedNone},
		{"a thread whose root is ours", eventCallback(messageEvent("hi", object{"thread_ts": "1.1", "parent_user_id": "UPARLEY01"})), us, event.AddressedReply},
		{"a broadcast reply in such a thread", eventCallback(messageEvent("hi", object{"subtype": "thread_broadcast", "thread_ts": "1.1", "root": object{"ts": "1.1", "user": "UPARLEY01"}})), us, event.AddressedReply},
		{"another's thread", eventCallback(messageEvent("hi", object{"thread_ts": "1.1", "parent_user_id": "UTOMAS001"})), us, event.AddressedNone},
		{"our user is named by the callback", eventCallback(messageEvent("<@UPARLEY01>", nil)), event.Self{}, event.AddressedMention},
		{"our user is named by authed_users", object{"type": "event_callback", "event": messageEvent("<@UOLD00001>", nil), "authed_users": []string{"UOLD00001"}},
			event.Self{}, event.AddressedMention},
		{"our known user differs from the callback's", eventCallback(messageEvent("<@UPARLEY01>", nil)), event.Self{UserID: "UOTHER001"}, event.AddressedNone},
	} {
		if got := messageOf(t, tt.body, fakeDirectory{self: tt.self}).Addressed; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.about, got, tt.want)
		}
	}
}

// TestFollowUp checks which messages continue a thread. A channel, a direct message and a
// group direct message are no threads.
func TestFollowUp(t *testing.T) {
	const root = "1749999999.000100"
	for name, c := range map[string]struct {
		text string
		more object
		want bool
	}{
		"a reply in a thread":          {"and then?", object{"thread_ts": root, "channel_type": "channel"}, true},
		"a reply to the channel too":   {"and then?", object{"thread_ts": root, "channel_type": "channel", "subtype": "thread_broadcast"}, true},
		"a private channel":            {"and then?", object{"thread_ts": root, "channel_type": "group"}, true},
		"a date is no mention":         {"<!date^1^{date}|then>", object{"thread_ts": root, "channel_type": "channel"}, true},
		"a typed mention is none":      {"&lt;@U2&gt; and then?", object{"thread_ts": root, "channel_type": "channel"}, true},
		"a top-level message":          {"and then?", object{"channel_type": "channel"}, false},
		"the root":                     {"and then?", object{"thread_ts": "1750000000.000100", "channel_type": "channel"}, false},
		"a thread in a direct message": {"and then?", object{"thread_ts": root, "channel_type": "im", "channel": "D1"}, false},
		"a thread in a group message":  {"and then?", object{"thread_ts": root, "channel_type": "mpim"}, false},
		"somebody else":                {"<@U2> and then?", object{"thread_ts": root, "channel_type": "channel"}, false},
		"a user group":                 {"<!subteam^S1|@gardeners> and then?", object{"thread_ts": root, "channel_type": "channel"}, false},
		"everybody":                    {"<!here> and then?", object{"thread_ts": root, "channel_type": "channel"}, false},
	} {
		if got := messageOf(t, messageEvent(c.text, c.more), fakeDirectory{self: us}).FollowUp; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOwnMessagesAreRecognisedByID(t *testing.T) {
	metadata := object{"event_type": "parley_delivery", "event_payload": object{"key": "k1"}}
	nul := object{"event_type": "parley_delivery", "event_payload": object{"key": "k\x00"}}
	for _, tt := range []struct {
		about string
		body  object
		self  event.Self
		own   bool
		key   string
	}{
		{"our user", eventCallback(messageEvent("hi", object{"user": "UPARLEY01", "metadata": metadata})), us, true, "k1"},
		{"a key with a NUL", eventCallback(messageEvent("hi", object{"user": "UPARLEY01", "metadata": nul})), us, true, "k\uFFFD"},
		{"our bot", eventCallback(messageEvent("hi", object{"user": nil, "bot_id": "BPARLEY01"})), us, true, ""},
		{"our app", eventCallback(messageEvent("hi", object{"bot_id": "B2", "bot_profile": object{"app_id": "APARLEY01"}})), us, true, ""},
		{"our app_mention", eventCallback(messageEvent("hi", object{"type": "app_mention", "user": "UPARLEY01"})), us, true, ""},
		{"our user is named by the callback", eventCallback(messageEvent("hi", object{"user": "UPARLEY01"})), event.Self{}, true, ""},
		{"another bot with our metadata", eventCallback(messageEvent("hi", object{"bot_id": "B2", "metadata": metadata})), us, false, ""},
		{"the user who installed the app", object{"type": "event_callback", "event": messageEvent("hi", nil), "authed_users": []string{"UMARA0001"}}, us, false, ""},
		{"our user is not known", messageEvent("hi", object{"bot_id": "B2"}), event.Self{}, false, ""},
	} {
		got := messageOf(t, tt.body, fakeDirectory{self: tt.self})
		if got.Own != tt.own || got.OwnKey != tt.key {
			t.Errorf("%s: own %t with key %q, want %t with %q", tt.about, got.Own, got.OwnKey, tt.own, tt.key)
		}
	}
}

func TestReplyTo(t *testing.T) {
	reply := object{"thread_ts": "1750000000.000050"}
	inRoom := messageOf(t, eventCallback(messageEvent("hi", reply)), fakeDirectory{self: us})
	if inRoom.ReplyTo != "C1/1750000000.000050" || inRoom.OpenedOn != "" {
		t.Errorf("in a channel: reply to %q, opened on %q", inRoom.ReplyTo, inRoom.OpenedOn)
	}
	reply["channel"] = "D1"
	inDirect := messageOf(t, eventCallback(messageEvent("hi", reply)), fakeDirectory{self: us})
	if inDirect.ReplyTo != "D1/1750000000.000050" || inDirect.OpenedOn != inDirect.ReplyTo {
		t.Errorf("in a direct message: reply to %q, opened on %q", inDirect.ReplyTo, inDirect.OpenedOn)
	}
	root := messageOf(t, eventCallback(messageEvent("hi", object{"thread_ts": "1750000000.000100"})), fakeDirectory{self: us})
	if root.ReplyTo != "" {
		t.Errorf("a root replies to %q", root.ReplyTo)
	}
}

func TestAnUnreadableMessageIsAnError(t *testing.T) {
	_, err := payload.Normalizer{}.Normalize(t.Context(), envelopeOf(t, messageEvent("hi", object{"ts": 7})), fakeDirectory{})
	if err == nil || err.Error() != "ts: must be a string, not number" {
		t.Errorf("error %v", err)
	}
}

// TestOptionalFields checks that a fault in a field without which a message keeps its meaning is no
// fault of the message, and that it hides no other fault.
func TestOptionalFields(t *testing.T) {
	faulty := object{
		"username": 5, "client_msg_id": []int{}, "user_profile": "none", "bot_profile": object{"name": true},
		"files": []object{{"id": "F1", "name": "a", "mimetype": "text/plain", "size": "big", "filetype": 7}},
	}
	got := messageOf(t, messageEvent("hi", faulty), fakeDirectory{self: us})
	if diff := cmp.Diff([]event.Attachment{{ID: "F1", Name: "a", MimeType: "text/plain"}}, got.Attachments); diff != "" || got.Content != "hi" {
		t.Errorf("content %q, %s", got.Content, diff)
	}
	faulty["text"] = 5
	_, err := payload.Normalizer{}.Normalize(t.Context(), envelopeOf(t, messageEvent("", faulty)), fakeDirectory{})
	if err == nil || err.Error() != "text: must be a string, not number" {
		t.Errorf("error %v", err)
	}
}

// FuzzNormalizer checks properties of every body with a valid signature.
func FuzzNormalizer(f *testing.F) {
	files, err := filepath.Glob("../../../testdata/slack/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		envelopes, _ := recording(f, file)
		for _, envelope := range envelopes {
			f.Add([]byte(envelope.Body))
		}
	}
	f.Add([]byte(`{"type":"message","channel":"C1","user":"U1","ts":"1.2","text":"<!date^1|`))
	f.Fuzz(func(t *testing.T, body []byte) {
		envelope := event.Envelope{Workspace: "acme", Platform: event.Slack, Body: body}
		keys := payload.Normalizer{}.Keys(envelope, fakeDirectory{self: us})
		got, err := payload.Normalizer{}.Normalize(t.Context(), envelope, fakeDirectory{self: us})
		checkAgreement(t, 0, keys, got, err)
		if len(keys.Dedupe) > 512 || strings.ContainsRune(keys.Dedupe, 0) || !utf8.ValidString(keys.Dedupe) {
			t.Errorf("the key %q does not fit every store", keys.Dedupe)
		}
		if got.Message == nil {
			return
		}
		m := got.Message
		if err := m.Metadata.Validate(); err != nil {
			t.Error(err)
		}
		if event.Text(m.Content) != m.Content {
			t.Errorf("content %q", m.Content)
		}
		if keys.Kind == event.KindMessage && m.Thread != keys.Thread {
			t.Errorf("thread %s, but the keys have %s", m.Thread, keys.Thread)
		}
	})
}

// TestCarries names the other messages whose words a payload contains.
func TestCarries(t *testing.T) {
	channel := normalized(t, eventCallback(messageEvent("hi", nil)), fakeDirectory{self: us}).Message.Channel.ID
	for name, c := range map[string]struct {
		fields object
		want   []string
	}{
		"a reply to the channel too": {object{"subtype": "thread_broadcast", "thread_ts": "1.1", "root": object{"ts": "1.1", "user": "U1", "text": "secret"}}, []string{channel + "/1.1"}},
		"a link to a message":        {object{"attachments": []object{{"is_msg_unfurl": true, "channel_id": "C9", "ts": "2.2", "text": "secret"}}}, []string{"C9/2.2"}},
		"a link to a page":           {object{"attachments": []object{{"from_url": "https://example.com", "text": "hello"}}}, nil},
		"a reply":                    {object{"thread_ts": "1.1", "parent_user_id": "U1"}, nil},
	} {
		if diff := cmp.Diff(c.want, normalized(t, eventCallback(messageEvent("hi", c.fields)), fakeDirectory{self: us}).Carries); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestOnlyAWholePreviewIsTheSnippet checks which previews replace a snippet's content.
func TestOnlyAWholePreviewIsTheSnippet(t *testing.T) {
	for more, want := range map[string]string{
		``: "one\ntwo", `,"lines_more":0,"preview_is_truncated":false`: "one\ntwo", `,"lines_more":null`: "one\ntwo",
		`,"lines_more":3`: "", `,"preview_is_truncated":true`: "",
	} {
		file := json.RawMessage(`{"id":"F1","name":"a.txt","mimetype":"text/plain","mode":"snippet","preview":"one\ntwo"` + more + `}`)
		m := messageOf(t, messageEvent("", object{"files": []any{file}}), fakeDirectory{self: us})
		if len(m.Attachments) != 1 || m.Attachments[0].Words != want {
			t.Errorf("%s: %+v", more, m.Attachments)
		}
	}
}
