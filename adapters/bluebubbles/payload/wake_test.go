package payload_test

import (
	"strings"
	"testing"

	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

// TestWakeWords checks whole words in any case and script, and the words of one chat.
func TestWakeWords(t *testing.T) {
	a := payload.NewNormalizer([]string{"parley", "hey you", "José", "帕利", "ΣΟΦΌΣ", "パーレイ"},
		[]payload.ChannelWake{{ID: "iMessage;+;chat2", Wake: []string{"bot"}}, {ID: "chat3"}}, false)
	for _, test := range []struct {
		chat  string
		style int
		text  string
		want  event.Addressed
	}{
		{group, 43, "Parley, are you there?", event.AddressedMention},
		{group, 43, "is it PARLEY's turn", event.AddressedMention},
		{group, 43, "so: Hey You!", event.AddressedMention},
		{group, 43, "@parley", event.AddressedMention},
		{group, 43, "we parleyed for parleys", event.AddressedNone},
		{group, 43, "superparley", event.AddressedNone},
		{group, 43, "parley_bot", event.AddressedNone},
		{group, 43, "parley\u0301 é", event.AddressedNone},
		{group, 43, "josé?", event.AddressedMention},
		{group, 43, "JOSÉ?", event.AddressedMention},
		{group, 43, "请问帕利你好", event.AddressedMention},
		{group, 43, "ο σοφός λέει", event.AddressedMention},
		{group, 43, "请parley你好", event.AddressedMention},
		{group, 43, "ねえパーレイさん", event.AddressedMention},
		{group, 43, "スパーレイン", event.AddressedNone},
		{group, 43, "", event.AddressedNone},
		{group, 43, "see https://example.org/parley?a=parley", event.AddressedNone},
		{group, 43, "write to parley@example.org or a.b@parley.example.org", event.AddressedNone},
		{group, 43, "parley.com and docs.parley.zone/x, www.parley.zone or parley.co.uk and parley.de", event.AddressedNone},
		{group, 43, "clone git@example.org:acme/parley.git from localhost:8080/parley or 10.0.0.7/parley", event.AddressedNone},
		{group, 43, "ann@example.org: parley, hello", event.AddressedMention},
		{group, 43, "https://example.org/parley, parley?", event.AddressedMention},
		{group, 43, "看https://example.org/parley请parley你好", event.AddressedMention},
		{group, 43, "thanks parley.really", event.AddressedMention},
		{"iMessage;+;chat2", 43, "bot?", event.AddressedMention},
		{"iMessage;+;chat2", 43, "parley?", event.AddressedNone},
		{"SMS;+;chat3", 43, "parley?", event.AddressedNone},
		{direct, 45, "parley?", event.AddressedDirect},
	} {
		e, err := a.Normalize(t.Context(), webhook(t, "new-message", hello().with(fields{"text": test.text}).in(test.chat, test.style)), contacts{self: event.Self{Address: owner}})
		if err != nil || e.Message.Addressed != test.want || (e.Message.Called != "") != (test.want == event.AddressedMention) {
			t.Errorf("%q in %s: addressed %q by %q, %v", test.text, test.chat, e.Message.Addressed, e.Message.Called, err)
		}
	}
}

// TestLongWordsAreReadOnce looks for a wake word in a long word that contains it very often. With
// one pass over the text for each place, the test exceeds its time limit.
func TestLongWordsAreReadOnce(t *testing.T) {
	n := payload.NewNormalizer([]string{"parley", "bot"}, nil, false)
	long := strings.Repeat("parley", 100_000)
	for text, want := range map[string]event.Addressed{long: event.AddressedNone, long + " bot": event.AddressedMention} {
		e, err := n.Normalize(t.Context(), webhook(t, "new-message", hello().with(fields{"text": text}).in(group, 43)), contacts{self: event.Self{Address: owner}})
		if err != nil || e.Message.Addressed != want {
			t.Errorf("addressed %q, want %q: %v", e.Message.Addressed, want, err)
		}
	}
}

// TestTheOwnersWordsInADirectChatAreNoMention checks that they are for the other person.
func TestTheOwnersWordsInADirectChatAreNoMention(t *testing.T) {
	e, err := payload.NewNormalizer([]string{"parley"}, nil, false).Normalize(t.Context(), webhook(t, "new-message", mine().with(fields{"text": "ask parley"})), contacts{self: event.Self{Address: owner}})
	if err != nil || e.Message.Addressed != event.AddressedNone {
		t.Errorf("addressed %q, %v", e.Message.Addressed, err)
	}
}

// TestPrograms checks that a bank or a one-time code is not a person.
func TestPrograms(t *testing.T) {
	for address, want := range map[string]event.SenderType{
		nora: event.Human, "tomas@example.org": event.Human, "+1 (555) 555-0142": event.Human, "5550142": event.Human,
		"22395": event.Bot, "262966": event.Bot, "AMAZON": event.Bot, "My Bank": event.Bot, "urn:biz:5e6f": event.Bot, "+12345": event.Bot,
	} {
		m := message(t, "new-message", hello().with(fields{"handle": fields{"address": address}}), contacts{})
		if m.Metadata.SenderType != want {
			t.Errorf("%s is a %s", address, m.Metadata.SenderType)
		}
	}
}

// TestOneself checks the chat with oneself: own messages address us, and their received copies
// are ignored.
func TestOneself(t *testing.T) {
	known := contacts{self: event.Self{Address: owner}}
	if m := message(t, "new-message", mine().in(oneself, 45), known); m.Addressed != event.AddressedDirect {
		t.Errorf("addressed %q", m.Addressed)
	}
	copied := hello().with(fields{"handle": fields{"address": owner}}).in(oneself, 45)
	if e := normalize(t, "new-message", copied, known); e.Ignored != event.ReasonOwnMessage {
		t.Errorf("the received copy is %+v", e)
	}
}

// TestTextInBodyAlone checks that the text comes from attributedBody if there is no other.
func TestTextInBodyAlone(t *testing.T) {
	body := []any{fields{"string": "hel\uFFFC", "runs": []any{}}, fields{"string": "lo"}}
	for name, data := range map[string]fields{
		"alone":  hello().with(fields{"text": nil, "attributedBody": body}),
		"beside": hello().with(fields{"attributedBody": []any{fields{"string": "other"}}}),
		"broken": hello().with(fields{"attributedBody": 7}),
	} {
		if m := message(t, "new-message", data, contacts{}); m.Content != "hello" {
			t.Errorf("%s: %q", name, m.Content)
		}
	}
}

// TestAttemptOfKey checks that the key is found in the temporary guid of every attempt.
func TestAttemptOfKey(t *testing.T) {
	if m := message(t, "new-message", mine().with(fields{"tempGuid": "r7k2m9c4x1.3f"}), contacts{}); m.OwnKey != "r7k2m9c4x1" {
		t.Errorf("own key %q", m.OwnKey)
	}
}
