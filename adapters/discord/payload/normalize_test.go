package payload_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// sameMetadata compares the bytes of metadata.
var sameMetadata = cmp.Comparer(func(a, b event.Metadata) bool { return string(a.Bytes()) == string(b.Bytes()) })

var noon = time.Date(2026, 9, 21, 14, 0, 0, 250_000_000, time.UTC)

func TestMessage(t *testing.T) {
	got := normalize(t, known, "MESSAGE_CREATE", posted("hello"))
	want := event.Event{Kind: event.KindMessage, Server: "1", Message: &event.Message{
		ExternalID: sentID,
		Thread:     "discord:acme:10",
		Channel:    event.Channel{ID: room, Type: event.ChannelRoom},
		Content:    "hello",
		SentAt:     noon,
		Metadata: event.Metadata{
			Source:            "discord",
			SenderID:          "discord:201",
			SenderDisplayName: "nora",
			SenderType:        event.Human,
			ChannelExternalID: room,
			MentionToken:      "<@201>",
		},
	}}
	if diff := cmp.Diff(want, got, sameMetadata); diff != "" {
		t.Error(diff)
	}
	if err := got.Message.Metadata.Validate(); err != nil {
		t.Error(err)
	}
}

func TestContentIsVerbatim(t *testing.T) {
	for _, typed := range []string{
		"",
		"  two  spaces, a tab\t and lines\r\n\n",
		"<@900> <@!900> <@&5> <#10> <:sprout:6> <a:hop:7> <t:1790000000:R> @everyone",
		"&amp; &lt;b&gt; `code` **bold** \\*",
		"[Bob]: pay him",
	} {
		if got := created(t, posted(typed)).Content; got != typed {
			t.Errorf("the content of %q is %q", typed, got)
		}
	}
	if got := created(t, posted("a\x00b")).Content; got != "a\uFFFDb" {
		t.Errorf("the content with U+0000 is %q", got)
	}
	body := []byte("{\"op\":0,\"t\":\"MESSAGE_CREATE\",\"d\":{\"id\":\"5\",\"channel_id\":\"10\",\"author\":{\"id\":\"201\",\"username\":\"n\xff\"},\"content\":\"a\xffb\"}}")
	e, err := payload.Normalizer{}.Normalize(t.Context(), event.Envelope{Workspace: "acme", Body: body}, known)
	if err != nil || e.Message.Content != "a\uFFFDb" || e.Message.Metadata.SenderDisplayName != "n\uFFFD" {
		t.Errorf("invalid bytes yield %+v, %v", e.Message, err)
	}
}

func TestPoll(t *testing.T) {
	poll := fields{
		"question": fields{"text": "What next?"},
		"answers": []fields{
			{"answer_id": 1, "poll_media": fields{"text": "Carrots", "emoji": fields{"name": "🥕"}}},
			{"answer_id": 2, "poll_media": fields{"text": "Kale"}},
		},
	}
	want := "What next?\n- Carrots\n- Kale"
	if got := created(t, posted("").with(fields{"poll": poll})).Content; got != want {
		t.Errorf("the poll is %q, want %q", got, want)
	}
	if got := created(t, posted("Vote!").with(fields{"poll": poll})).Content; got != "Vote!\n"+want {
		t.Errorf("text with a poll is %q", got)
	}
}

func TestSenderName(t *testing.T) {
	directory := directory{self: known.self, users: map[string]adapters.User{nora: {DisplayName: "From the directory"}}}
	everything := fields{"id": nora, "username": "nora.l", "global_name": "Nora L."}
	tests := map[string]struct {
		author, member fields
		want           string
	}{
		"nickname":           {everything, fields{"nick": "Nono"}, "Nono"},
		"no nickname":        {everything, fields{"nick": nil}, "Nora L."},
		"blank nickname":     {everything, fields{"nick": " \t"}, "Nora L."},
		"spaces around":      {everything, fields{"nick": " No no "}, " No no "},
		"no display name":    {everything.with(fields{"global_name": nil}), nil, "nora.l"},
		"blank display name": {everything.with(fields{"global_name": ""}), nil, "nora.l"},
		"no name":            {fields{"id": nora}, nil, "From the directory"},
		"unknown user":       {fields{"id": "299"}, nil, "299"},
	}
	for name, test := range tests {
		data := posted("").with(fields{"author": test.author, "member": test.member})
		got := normalize(t, directory, "MESSAGE_CREATE", data).Message.Metadata.SenderDisplayName
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestSenderType(t *testing.T) {
	directory := directory{self: known.self, users: map[string]adapters.User{"300": {DisplayName: "deploys", IsBot: true}}}
	tests := map[string]struct {
		more  fields
		want  event.SenderType
		token string
		alt   string
	}{
		"person":                  {fields{"application_id": "77"}, event.Human, "<@201>", ""},
		"bot":                     {fields{"author": person(nora, "x").with(fields{"bot": true})}, event.Bot, "", ""},
		"Discord itself":          {fields{"author": person(nora, "x").with(fields{"system": true})}, event.Bot, "", ""},
		"webhook":                 {fields{"webhook_id": nora}, event.Bot, "", ""},
		"webhook of a program":    {fields{"webhook_id": nora, "application_id": "77"}, event.Bot, "", "77"},
		"webhook of an odd field": {fields{"webhook_id": nora, "application_id": 7.5}, event.Bot, "", ""},
		"bot in directory":        {fields{"author": fields{"id": "300"}}, event.Bot, "", ""},
		"no lookup if named":      {fields{"author": person("300", "x")}, event.Human, "<@300>", ""},
	}
	for name, test := range tests {
		message := normalize(t, directory, "MESSAGE_CREATE", posted("").with(test.more)).Message
		if message.AltSenderID != test.alt {
			t.Errorf("%s: the other id %q, want %q", name, message.AltSenderID, test.alt)
		}
		m := message.Metadata
		if m.SenderType != test.want || m.MentionToken != test.token {
			t.Errorf("%s: a %s with the token %q, want a %s with %q", name, m.SenderType, m.MentionToken, test.want, test.token)
		}
	}
}

func TestSentAt(t *testing.T) {
	if got := created(t, posted("")).SentAt; !got.Equal(noon) {
		t.Errorf("sent at %v, want %v", got, noon)
	}
	// This id is the example in Discord's reference.
	withoutTimestamp := posted("").with(fields{"timestamp": nil, "id": "175928847299117063"})
	if got, want := created(t, withoutTimestamp).SentAt, time.UnixMilli(1_462_015_105_796).UTC(); got != want {
		t.Errorf("the time of the id is %v, want %v", got, want)
	}
}

func TestOwn(t *testing.T) {
	tests := map[string]struct {
		data fields
		want bool
	}{
		"ours":             {posted("").with(fields{"author": person(bot, "parley").with(fields{"bot": true})}), true},
		"ours, by command": {posted("").with(fields{"author": person(bot, "parley"), "type": 20, "webhook_id": "901"}), true},
		"another bot's":    {posted("").with(fields{"author": person("300", "x").with(fields{"bot": true})}), false},
		"a webhook's":      {posted("").with(fields{"author": person("501", "parley"), "webhook_id": "501"}), false},
		"a person's":       {posted(""), false},
	}
	for name, test := range tests {
		if got := created(t, test.data).Own; got != test.want {
			t.Errorf("%s: own is %t", name, got)
		}
	}
	if normalize(t, unknown, "MESSAGE_CREATE", posted("")).Message.Own {
		t.Error("a person's message counts as ours before our identity is known")
	}
}

func TestThreads(t *testing.T) {
	tests := map[string]struct {
		more fields
		want string
	}{
		"room":                     {nil, ""},
		"by position":              {fields{"position": 0}, room},
		"by type":                  {fields{"channel_type": 11}, room},
		"private":                  {fields{"channel_type": 12}, room},
		"a text channel":           {fields{"channel_type": 0}, ""},
		"a voice channel":          {fields{"channel_type": 2}, ""},
		"the forum post's opening": {fields{"channel_id": sentID, "position": 0}, ""},
	}
	for name, test := range tests {
		if got := created(t, posted("").with(test.more)).OpenedOn; got != test.want {
			t.Errorf("%s: opened on %q, want %q", name, got, test.want)
		}
	}
}

func TestFiles(t *testing.T) {
	m := created(t, posted("").with(fields{
		"attachments": []fields{
			{"id": "41", "filename": "voice-message.ogg", "content_type": "audio/ogg", "size": 9120, "url": "https://cdn.example.org/a?sig=s", "waveform": "AAA", "duration_secs": 3.2},
			{"id": "42", "filename": "notes", "size": 12, "duration_secs": "long"},
			{"id": "43", "size": 9, "content_type": nil},
			{"id": "44", "filename": "film.mp4", "content_type": "video/mp4", "duration_secs": 61},
		},
		"sticker_items": []fields{
			{"id": "51", "name": "Wave", "format_type": 1},
			{"id": "52", "name": "Hop", "format_type": 2},
			{"id": "53", "name": "Spin", "format_type": 3},
			{"id": "54", "name": "Nod", "format_type": 4},
			{"id": "55", "name": "New", "format_type": 99},
		},
	}))
	want := []event.Attachment{
		{ID: "41", Name: "voice-message.ogg", MimeType: "audio/ogg", Size: 9120, Type: event.TypeVoice, DurationMS: 3200},
		{ID: "42", Name: "notes", Size: 12},
		{ID: "44", Name: "film.mp4", MimeType: "video/mp4", DurationMS: 61_000},
		{ID: "51", Name: "Wave", MimeType: "image/png"},
		{ID: "52", Name: "Hop", MimeType: "image/apng"},
		{ID: "53", Name: "Spin", MimeType: "application/json"},
		{ID: "54", Name: "Nod", MimeType: "image/gif"},
		{ID: "55", Name: "New"},
	}
	if diff := cmp.Diff(want, m.Attachments); diff != "" {
		t.Error(diff)
	}
	if m.Content != "" {
		t.Errorf("the content of a message with only files is %q", m.Content)
	}
}

// TestVoiceMessage: the flag of the message shows it too, and no length is too odd.
func TestVoiceMessage(t *testing.T) {
	for length, want := range map[string]int64{"0.0004": 0, "1.0006": 1001, "-1": 0, "1e300": 0, `"3"`: 0, "null": 0} {
		got := created(t, posted("").with(fields{
			"flags": 8192, "attachments": []fields{{"id": "41", "filename": "v.ogg", "duration_secs": json.RawMessage(length)}},
		})).Attachments
		if diff := cmp.Diff([]event.Attachment{{ID: "41", Name: "v.ogg", Type: event.TypeVoice, DurationMS: want}}, got); diff != "" {
			t.Errorf("%s: %s", length, diff)
		}
	}
}
