package slack_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/ingest/event"

	"github.com/google/go-cmp/cmp"
)

func normalized(t testing.TB, body any, directory adapters.Directory) event.Event {
	t.Helper()
	out, err := slack.Normalizer{}.Normalize(t.Context(), envelopeOf(t, body), directory)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// heard is the message that a body makes.
func heard(t testing.TB, body any, directory adapters.Directory) *event.Message {
	t.Helper()
	out := normalized(t, body, directory)
	if out.Message == nil {
		t.Fatalf("no message: %+v", out)
	}
	return out.Message
}

func TestAMessageIsWhatWasSaidAndByWhom(t *testing.T) {
	directory := people{self: us, users: map[string]adapters.User{"UMARA0001": {DisplayName: "Mara"}}}
	got := heard(t, callback(said(" <@UPARLEY01> a &lt; b ", object{"channel_type": "channel"})), directory)
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

func TestAVoiceClipIsSound(t *testing.T) {
	clip := func(more object) object {
		file := object{"id": "F1", "subtype": "slack_audio", "filetype": "webm", "mimetype": "video/webm", "mode": "hosted"}
		for key, value := range more {
			file[key] = value
		}
		return said("", object{"subtype": "file_share", "files": []object{file}})
	}
	for name, c := range map[string]struct {
		more object
		want event.Attachment
	}{
		"as a video": {nil, event.Attachment{ID: "F1", Name: "audio_message.webm", MimeType: "audio/webm"}},
		"as sound":   {object{"mimetype": "audio/mp4", "name": "a.m4a"}, event.Attachment{ID: "F1", Name: "a.m4a", MimeType: "audio/mp4"}},
		"a film":     {object{"subtype": "slack_video", "name": "a.webm"}, event.Attachment{ID: "F1", Name: "a.webm", MimeType: "video/webm"}},
		"gone":       {object{"mode": "tombstone", "name": "a"}, event.Attachment{ID: "F1", Name: "a", MimeType: "audio/webm", Gone: true}},
		"not for us": {object{"file_access": "access_denied", "name": "a"}, event.Attachment{ID: "F1", Name: "a", MimeType: "audio/webm", Gone: true}},
	} {
		got := heard(t, clip(c.more), people{self: us}).Attachments
		if diff := cmp.Diff([]event.Attachment{c.want}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// telltale is a directory that knows everybody, and shows that it was asked.
type telltale struct{ people }

func (telltale) User(_ context.Context, id string) (adapters.User, bool) {
	return adapters.User{DisplayName: "asked for " + id}, true
}

func TestWhatThePayloadNamesIsNotLookedUp(t *testing.T) {
	for _, tt := range []struct {
		about string
		more  object
		want  string
	}{
		{"a person of a shared channel", object{"user_profile": object{"display_name": "Ines", "real_name": "Inês Prado"}}, "Ines"},
		{"who has no display name", object{"user_profile": object{"display_name": " ", "real_name": "Inês Prado"}}, "Inês Prado"},
		{"a profile without a name", object{"user_profile": object{}}, "asked for UMARA0001"},
		{"a bot's name for this message", object{"bot_id": "B1", "username": "night build", "bot_profile": object{"name": "build"}}, "night build"},
		{"a bot's name", object{"bot_id": "B1", "bot_profile": object{"name": "build"}}, "build"},
		{"a bot's user", object{"bot_id": "B1"}, "asked for UMARA0001"},
		{"a bot without a user", object{"bot_id": "B1", "user": nil}, "asked for B1"},
		{"a person", nil, "asked for UMARA0001"},
	} {
		got := heard(t, callback(said("hi", tt.more)), telltale{people{self: us}})
		if got.Metadata.SenderDisplayName != tt.want {
			t.Errorf("%s is %q, want %q", tt.about, got.Metadata.SenderDisplayName, tt.want)
		}
	}
}

func TestABotIsToldFromAPerson(t *testing.T) {
	directory := people{self: us, users: map[string]adapters.User{"UGREETER1": {DisplayName: "Greeter", IsBot: true}}}
	for _, tt := range []struct {
		about  string
		more   object
		sender string
		kind   event.SenderType
	}{
		{"a person", nil, "slack:UMARA0001", event.Human},
		{"a bot with a user", object{"bot_id": "B1"}, "slack:B1", event.Bot},
		{"an integration", object{"user": nil, "bot_id": "B1", "subtype": "bot_message"}, "slack:B1", event.Bot},
		{"an integration with a name alone", object{"user": nil, "username": "cron", "subtype": "bot_message"}, "slack:cron", event.Bot},
		{"Slack's own bot", object{"user": "USLACKBOT"}, "slack:USLACKBOT", event.Bot},
		{"a user that the directory knows for a bot", object{"user": "UGREETER1"}, "slack:UGREETER1", event.Bot},
	} {
		got := heard(t, callback(said("hi", tt.more)), directory).Metadata
		if got.SenderID != tt.sender || got.SenderType != tt.kind {
			t.Errorf("%s: %s, a %s; want %s, a %s", tt.about, got.SenderID, got.SenderType, tt.sender, tt.kind)
		}
		if hasToken := got.MentionToken != ""; hasToken != (tt.kind == event.Human) {
			t.Errorf("%s: mention token %q", tt.about, got.MentionToken)
		}
	}
}

// TestANameIsNoID: who posts under a name alone can't take another's id with it.
func TestANameIsNoID(t *testing.T) {
	for name, id := range map[string]string{"cron": "slack:cron", "UMARA0001": "slack:name:UMARA0001", "B024BE7LH": "slack:name:B024BE7LH"} {
		m := heard(t, callback(said("x", object{"user": "", "subtype": "bot_message", "username": name})), people{self: us}).Metadata
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
		{"a mention", callback(said("hi <@UPARLEY01|parley>", nil)), us, event.AddressedMention},
		{"somebody else's mention", callback(said("hi <@UTOMAS001>", nil)), us, event.AddressedNone},
		{"typed, not mentioned", callback(said("hi &lt;@UPARLEY01&gt;", nil)), us, event.AddressedNone},
		{"an app_mention", said("hi", object{"type": "app_mention"}), event.Self{}, event.AddressedMention},
		{"a direct message", callback(said("hi", inDirect)), us, event.AddressedDirect},
		{"a group direct message", callback(said("hi", object{"channel_type": "mpim"})), us, event.AddressedNone},
		{"a thread whose root is ours", callback(said("hi", object{"thread_ts": "1.1", "parent_user_id": "UPARLEY01"})), us, event.AddressedReply},
		{"another's thread", callback(said("hi", object{"thread_ts": "1.1", "parent_user_id": "UTOMAS001"})), us, event.AddressedNone},
		{"told by the callback who we are", callback(said("<@UPARLEY01>", nil)), event.Self{}, event.AddressedMention},
		{"told by its older form", object{"type": "event_callback", "event": said("<@UOLD00001>", nil), "authed_users": []string{"UOLD00001"}},
			event.Self{}, event.AddressedMention},
		{"known better than told", callback(said("<@UPARLEY01>", nil)), event.Self{UserID: "UOTHER001"}, event.AddressedNone},
	} {
		if got := heard(t, tt.body, people{self: tt.self}).Addressed; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.about, got, tt.want)
		}
	}
}

func TestOurOwnWordsAreRecognisedByID(t *testing.T) {
	mark := object{"event_type": "parley_delivery", "event_payload": object{"key": "k1"}}
	nul := object{"event_type": "parley_delivery", "event_payload": object{"key": "k\x00"}}
	for _, tt := range []struct {
		about string
		body  object
		self  event.Self
		own   bool
		key   string
	}{
		{"our user", callback(said("hi", object{"user": "UPARLEY01", "metadata": mark})), us, true, "k1"},
		{"a key that no store holds", callback(said("hi", object{"user": "UPARLEY01", "metadata": nul})), us, true, "k\uFFFD"},
		{"our bot", callback(said("hi", object{"user": nil, "bot_id": "BPARLEY01"})), us, true, ""},
		{"our app", callback(said("hi", object{"bot_id": "B2", "bot_profile": object{"app_id": "APARLEY01"}})), us, true, ""},
		{"our app_mention", callback(said("hi", object{"type": "app_mention", "user": "UPARLEY01"})), us, true, ""},
		{"told by the callback", callback(said("hi", object{"user": "UPARLEY01"})), event.Self{}, true, ""},
		{"another with our mark", callback(said("hi", object{"bot_id": "B2", "metadata": mark})), us, false, ""},
		{"who installed the app", object{"type": "event_callback", "event": said("hi", nil), "authed_users": []string{"UMARA0001"}}, us, false, ""},
		{"nobody is known", said("hi", object{"bot_id": "B2"}), event.Self{}, false, ""},
	} {
		got := heard(t, tt.body, people{self: tt.self})
		if got.Own != tt.own || got.OwnKey != tt.key {
			t.Errorf("%s: own %t with key %q, want %t with %q", tt.about, got.Own, got.OwnKey, tt.own, tt.key)
		}
	}
}

func TestRepliesSayWhatTheyAnswer(t *testing.T) {
	reply := object{"thread_ts": "1750000000.000050"}
	inRoom := heard(t, callback(said("hi", reply)), people{self: us})
	if inRoom.ReplyTo != "C1/1750000000.000050" || inRoom.OpenedOn != "" {
		t.Errorf("in a channel: reply to %q, opened on %q", inRoom.ReplyTo, inRoom.OpenedOn)
	}
	reply["channel"] = "D1"
	inDirect := heard(t, callback(said("hi", reply)), people{self: us})
	if inDirect.ReplyTo != "D1/1750000000.000050" || inDirect.OpenedOn != inDirect.ReplyTo {
		t.Errorf("in a direct message: reply to %q, opened on %q", inDirect.ReplyTo, inDirect.OpenedOn)
	}
	root := heard(t, callback(said("hi", object{"thread_ts": "1750000000.000100"})), people{self: us})
	if root.ReplyTo != "" {
		t.Errorf("a root answers %q", root.ReplyTo)
	}
}

func TestAnUnreadableMessageIsAnError(t *testing.T) {
	_, err := slack.Normalizer{}.Normalize(t.Context(), envelopeOf(t, said("hi", object{"ts": 7})), people{})
	if err == nil || err.Error() != "ts: must be a string, not number" {
		t.Errorf("error %v", err)
	}
}

// FuzzNormalizer holds what must be true of any body that passed the signature.
func FuzzNormalizer(f *testing.F) {
	files, err := filepath.Glob("../../testdata/slack/*.jsonl")
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
		keys := slack.Normalizer{}.Keys(envelope, people{self: us})
		said, err := slack.Normalizer{}.Normalize(t.Context(), envelope, people{self: us})
		checkAgreement(t, 0, keys, said, err)
		if len(keys.Dedupe) > 512 || strings.ContainsRune(keys.Dedupe, 0) || !utf8.ValidString(keys.Dedupe) {
			t.Errorf("no store holds the key %q", keys.Dedupe)
		}
		if said.Message == nil {
			return
		}
		m := said.Message
		if err := m.Metadata.Validate(); err != nil {
			t.Error(err)
		}
		if event.Text(m.Content) != m.Content {
			t.Errorf("content %q", m.Content)
		}
		if keys.Kind == event.KindMessage && m.Thread != keys.Thread {
			t.Errorf("thread %s, but the keys say %s", m.Thread, keys.Thread)
		}
	})
}
