package payload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/adapters/adaptertest"
	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var unexported = cmpopts.IgnoreUnexported(event.Metadata{})

func TestMessage(t *testing.T) {
	known := contacts{names: map[string]string{nora: "Nora Lindqvist"}}
	got := message(t, "new-message", hello().with(fields{"threadOriginatorGuid": target}), known)
	if got.Revision == "" {
		t.Error("the revision is empty")
	}
	want := &event.Message{
		ExternalID: guid,
		Thread:     "bluebubbles:home:" + nora,
		Channel:    event.Channel{ID: nora, Type: event.ChannelDirect},
		Content:    "hello",
		SentAt:     time.UnixMilli(1790000000000).UTC(),
		Revision:   got.Revision,
		Dated:      15,
		Addressed:  event.AddressedDirect,
		ReplyTo:    target,
		Metadata: event.Metadata{
			Source: "bluebubbles", SenderID: "bb:" + nora, SenderDisplayName: "Nora Lindqvist", SenderType: event.Human,
			ChannelExternalID: direct, IsFromMe: new(false), MessageGUID: guid,
		},
	}
	if diff := cmp.Diff(want, got, unexported); diff != "" {
		t.Error(diff)
	}
	if err := got.Metadata.Validate(); err != nil {
		t.Error(err)
	}
}

// TestUpdateIsComplete checks that an update lacks only the chat, which its payload does not
// contain.
func TestUpdateIsComplete(t *testing.T) {
	created := message(t, "new-message", hello(), contacts{})
	update := message(t, "updated-message", hello().update(), contacts{})
	created.Thread, created.Channel, created.Addressed = "", event.Channel{}, event.AddressedNone
	created.Metadata.ChannelExternalID = ""
	if diff := cmp.Diff(created, update, unexported); diff != "" {
		t.Error(diff)
	}
}

// TestContentComesLater checks that a message without content is empty, so it asks nothing yet.
func TestContentComesLater(t *testing.T) {
	for text, want := range map[string]bool{"hello": false, "\uFFFC": true} {
		if got := message(t, "new-message", hello().with(fields{"text": text}), contacts{}).IsEmpty(); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

// TestContentIsVerbatim: the content is the text alone. A subject is metadata.
func TestContentIsVerbatim(t *testing.T) {
	for _, test := range []struct {
		text, subject any
		want          string
	}{
		{"  [Bob]: pay him\n", nil, "  [Bob]: pay him\n"},
		{nil, nil, ""},
		{"\uFFFC", nil, ""},
		{"see \uFFFCthis\uFFFC", nil, "see this"},
		{"fish & <chips>", nil, "fish & <chips>"},
		{"bring the hose", "Saturday", "bring the hose"},
		{"bring the hose", "", "bring the hose"},
		{nil, "Saturday\uFFFC", ""},
		{"a\x00b", nil, "a\uFFFDb"},
	} {
		data := hello().with(fields{"text": test.text, "subject": test.subject})
		m := message(t, "new-message", data, contacts{})
		if m.Content != test.want {
			t.Errorf("text %q, subject %q: content %q, want %q", test.text, test.subject, m.Content, test.want)
		}
		subject, _ := test.subject.(string)
		if want := strings.TrimSuffix(subject, "\uFFFC"); m.Metadata.Subject() != want {
			t.Errorf("subject %q, want %q", m.Metadata.Subject(), want)
		}
	}
}

func TestAttachments(t *testing.T) {
	data := hello().with(fields{"text": "\uFFFC", "attachments": []any{
		fields{"guid": "at_0", "transferName": "IMG_1.HEIC", "mimeType": "image/heic", "totalBytes": 2048, "uti": "public.heic"},
		fields{"guid": "at_1", "hideAttachment": true},
		fields{"guid": "at_2", "uti": "com.apple.messages.payload"},
		fields{"guid": "at_3", "transferName": "3.pluginPayloadAttachment"},
		fields{"guid": "at_4", "transferName": nil, "mimeType": nil, "totalBytes": -1},
	}})
	got := message(t, "new-message", data, contacts{})
	want := []event.Attachment{{ID: "at_0", Name: "IMG_1.HEIC", MimeType: "image/heic", Size: 2048}, {ID: "at_4"}}
	if diff := cmp.Diff(want, got.Attachments); diff != "" {
		t.Error(diff)
	}
	if got.Content != "" {
		t.Errorf("the content of a message with only files is %q", got.Content)
	}
}

// TestTextMessages checks that a message by SMS or RCS is known, and that its sender's name says so.
func TestTextMessages(t *testing.T) {
	for name, test := range map[string]struct {
		data fields
		want bool
	}{
		"the chat's service": {hello().in("SMS;-;"+nora, 45), true},
		"RCS":                {hello().in("RCS;-;"+nora, 45), true},
		"the sender's":       {hello().with(fields{"handle": fields{"address": nora, "service": "SMS"}}).in("any;-;"+nora, 45), true},
		"an update":          {hello().with(fields{"handle": fields{"address": nora, "service": "RCS"}}).update(), true},
		"a group":            {hello().in("SMS;+;chat7", 43), true},
		"iMessage":           {hello().with(fields{"handle": fields{"address": nora, "service": "iMessage"}}), false},
		"the owner's":        {mine().in("SMS;-;"+nora, 45), false},
	} {
		kind := "new-message"
		if test.data["chats"] == nil {
			kind = "updated-message"
		}
		m := message(t, kind, test.data, contacts{})
		if m.TextMessage != test.want || strings.HasSuffix(m.Metadata.SenderDisplayName, " (SMS)") != test.want {
			t.Errorf("%s: %t, %q", name, m.TextMessage, m.Metadata.SenderDisplayName)
		}
	}
}

// TestTheWorkOfATextIsLinear reads the text of attributedBody in many parts, and many files.
func TestTheWorkOfATextIsLinear(t *testing.T) {
	grows := func(change func(n int) fields) func(n int) []byte {
		return func(n int) []byte { return webhook(t, "new-message", hello().with(change(n))).Body }
	}
	adaptertest.Work(t, map[string]func(n int) []byte{
		"parts": grows(func(n int) fields {
			return fields{"text": nil, "attributedBody": slices.Repeat([]any{fields{"string": "words ", "runs": []any{fields{"attributes": fields{}}}}}, n)}
		}),
		"runs": grows(func(n int) fields {
			run := fields{"range": []int{0, 1}, "attributes": fields{"__kIMMessagePartAttributeName": 0}}
			return fields{"text": nil, "attributedBody": []any{fields{"string": strings.Repeat("w", n), "runs": slices.Repeat([]any{run}, n)}}}
		}),
		"files": grows(func(n int) fields {
			return fields{"attachments": slices.Repeat([]any{fields{"guid": "at_0", "transferName": "a.png"}}, n)}
		}),
	}, func(body []byte) error {
		e := webhook(t, "new-message", hello())
		e.Body = body
		if keys := (payload.Normalizer{}).Keys(e, contacts{}); keys.Result != nil {
			return fmt.Errorf("%+v", keys.Result)
		}
		_, err := payload.Normalizer{}.Normalize(t.Context(), e, contacts{})
		return err
	})
}

// TestOptionalFields checks that a fault in a field without which a message keeps its meaning is no
// fault of the message.
func TestOptionalFields(t *testing.T) {
	data := hello().with(fields{
		"originalROWID": "last", "tempGuid": 7, "subject": 1, "error": "none", "partCount": fields{}, "groupActionType": "x", "dateRead": "noon",
		"handle":      fields{"address": nora, "displayName": 5, "firstName": true, "lastName": []int{}},
		"chats":       []any{fields{"guid": direct, "style": "x", "displayName": 5, "participants": 1}},
		"attachments": []any{fields{"guid": "at_0", "transferName": 1, "mimeType": 2, "totalBytes": "big", "hideAttachment": "no", "uti": 3, "metadata": "none"}},
	})
	got := message(t, "new-message", data, contacts{})
	if got.Content != "hello" || got.Metadata.SenderDisplayName != nora || got.Addressed != event.AddressedDirect {
		t.Errorf("the message is %+v", got)
	}
	if diff := cmp.Diff([]event.Attachment{{ID: "at_0"}}, got.Attachments); diff != "" {
		t.Error(diff)
	}
}

// TestNumbers reads numbers with a fraction and numbers that are given as a text.
func TestNumbers(t *testing.T) {
	want := message(t, "new-message", hello().with(fields{"dateEdited": 1790000001000, "attachments": []any{fields{"guid": "at_0", "totalBytes": 2048}}}).in(group, 43), contacts{})
	got := message(t, "new-message", hello().with(fields{
		"dateCreated": "1790000000000", "dateEdited": 1790000001000.75, "itemType": "0", "associatedMessageType": 0.0, "error": "0",
		"attachments": []any{fields{"guid": "at_0", "totalBytes": "2048.5"}},
	}).with(fields{"chats": []any{fields{"guid": group, "style": "43"}}}), contacts{})
	if diff := cmp.Diff(want, got, unexported); diff != "" {
		t.Error(diff)
	}
	if e := normalize(t, "new-message", tapback(2001.0, "").with(fields{"dateCreated": "1790000000000.5"}), contacts{}); e.Reaction == nil || e.Reaction.Emoji != "like" {
		t.Errorf("the event of a tapback is %+v", e)
	}
}

func TestSender(t *testing.T) {
	known := contacts{
		names: map[string]string{nora: "Nora from contacts", "blank@example.org": "  ", owner: "The Owner"},
		self:  event.Self{Address: owner},
	}
	from := func(handle any) fields { return hello().with(fields{"handle": handle}) }
	for name, test := range map[string]struct {
		data      fields
		directory contacts
		id, shown string
	}{
		"display name":       {from(fields{"address": nora, "displayName": "N. L.", "firstName": "Nora"}), known, "bb:" + nora, "N. L."},
		"first and last":     {from(fields{"address": nora, "firstName": "Nora", "lastName": "Lindqvist"}), known, "bb:" + nora, "Nora Lindqvist"},
		"only first name":    {from(fields{"address": nora, "firstName": "Nora"}), known, "bb:" + nora, "Nora"},
		"only last name":     {from(fields{"address": nora, "lastName": "Lindqvist"}), known, "bb:" + nora, "Lindqvist"},
		"blank names":        {from(fields{"address": nora, "firstName": "  ", "lastName": ""}), known, "bb:" + nora, "Nora from contacts"},
		"contacts":           {hello(), known, "bb:" + nora, "Nora from contacts"},
		"blank contact":      {from(fields{"address": "blank@example.org"}), known, "bb:blank@example.org", "blank@example.org"},
		"unknown to all":     {hello(), contacts{}, "bb:" + nora, nora},
		"no handle, direct":  {from(nil), contacts{}, "bb:" + nora, nora},
		"no handle, group":   {from(nil).in(group, 43), known, "bb:unknown", "Unknown"},
		"no handle, no chat": {from(nil).update(), known, "bb:unknown", "Unknown"},
		"from me":            {mine(), known, "bb:" + owner, "Me"},
		"from me, no self":   {mine(), contacts{}, "bb:me", "Me"},
		"from me, a handle":  {hello().with(fields{"isFromMe": true}), known, "bb:" + owner, "Me"},
	} {
		kind := "new-message"
		if test.data["chats"] == nil {
			kind = "updated-message"
		}
		got := message(t, kind, test.data, test.directory).Metadata
		if got.SenderID != test.id || got.SenderDisplayName != test.shown {
			t.Errorf("%s: %s %q, want %s %q", name, got.SenderID, got.SenderDisplayName, test.id, test.shown)
		}
		if fromMe := test.data["isFromMe"].(bool); got.IsFromMe == nil || *got.IsFromMe != fromMe {
			t.Errorf("%s: is_from_me is not %t", name, fromMe)
		}
	}
}

// TestNamedSendersAreNotLookedUp checks that a lookup happens only for a sender without a
// name in the payload, and never for the owner.
func TestNamedSendersAreNotLookedUp(t *testing.T) {
	var asked []string
	known := contacts{asked: func(address string) { asked = append(asked, address) }}
	message(t, "new-message", mine(), known)
	message(t, "new-message", hello().with(fields{"handle": fields{"address": nora, "firstName": "Nora"}}), known)
	normalize(t, "new-message", tapback("love", ""), known)
	if asked != nil {
		t.Errorf("the directory was asked for %q", asked)
	}
	message(t, "new-message", hello(), known)
	if diff := cmp.Diff([]string{nora}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestAddressed(t *testing.T) {
	self := event.Self{Address: owner}
	for name, test := range map[string]struct {
		data fields
		self event.Self
		want event.Addressed
	}{
		"direct":                  {hello(), self, event.AddressedDirect},
		"by text message":         {hello().in("SMS;-;"+nora, 45), self, event.AddressedDirect},
		"group":                   {hello().in(group, 43), self, event.AddressedNone},
		"owner, to Nora":          {mine(), self, event.AddressedNone},
		"owner, to oneself":       {mine().in(oneself, 45), self, event.AddressedDirect},
		"owner, in a group":       {mine().in(group, 43), self, event.AddressedNone},
		"owner, address unknown":  {mine().in(oneself, 45), event.Self{}, event.AddressedNone},
		"owner's e-mail, as sent": {mine().in("iMessage;-;me@example.org", 45), event.Self{Address: "Me@Example.org"}, event.AddressedDirect},
	} {
		got := message(t, "new-message", test.data, contacts{self: test.self})
		if got.Addressed != test.want {
			t.Errorf("%s: addressed %q, want %q", name, got.Addressed, test.want)
		}
		if got.Metadata.RecipientID != "" || got.Metadata.Passive != nil || got.Metadata.TriggerRAG != nil {
			t.Errorf("%s: the metadata has run hints", name)
		}
	}
}

// TestOwnKey checks that a tempGuid with the form of a delivery's key becomes OwnKey but does
// not set Own, because only the deliveries can tell whether it is a key.
func TestOwnKey(t *testing.T) {
	for _, test := range []struct {
		data fields
		want string
	}{
		{mine().with(fields{"tempGuid": "r7k2m9c4x1"}), "r7k2m9c4x1"},
		{mine().with(fields{"tempGuid": "abcdefghijklmnopqrstuvwxy"}), "abcdefghijklmnopqrstuvwxy"},
		{mine().with(fields{"tempGuid": "abcdefghijklmnopqrstuvwxyz"}), ""},
		{mine().with(fields{"tempGuid": "temp-r7k2m9c4"}), ""},
		{mine().with(fields{"tempGuid": "R7K2"}), ""},
		{mine().with(fields{"tempGuid": nil}), ""},
		{hello().with(fields{"tempGuid": "r7k2m9c4x1"}), ""},
	} {
		got := message(t, "new-message", test.data, contacts{})
		if got.OwnKey != test.want || got.Own {
			t.Errorf("tempGuid %v: own key %q, own %t; want %q", test.data["tempGuid"], got.OwnKey, got.Own, test.want)
		}
	}
}

func TestSentAtWithoutDate(t *testing.T) {
	for _, date := range []any{nil, 0} {
		if got := message(t, "new-message", hello().with(fields{"dateCreated": date}), contacts{}).SentAt; !got.IsZero() {
			t.Errorf("dateCreated %v: sent at %v", date, got)
		}
	}
}
