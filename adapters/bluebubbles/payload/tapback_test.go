package payload_test

import (
	"strings"
	"testing"

	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"

	"github.com/google/go-cmp/cmp"
)

const target = "5D1E0C2A-7B1F-4E55-9A60-000000000050"

// tapback returns a reaction of Nora's to target.
func tapback(kind any, text string) fields {
	return hello().with(fields{"text": text, "associatedMessageType": kind, "associatedMessageGuid": "p:0/" + target})
}

// reaction returns Nora's reaction to target, with the metadata of the tapback.
func reaction(emoji string, removed bool) *event.Reaction {
	return &event.Reaction{
		Emoji: emoji, SenderID: "bb:" + nora, Removed: removed,
		SenderType: event.Human, ChannelExternalID: "iMessage;-;" + nora, IsFromMe: new(false), GUID: guid,
	}
}

func TestTapback(t *testing.T) {
	want := event.Keys{
		Kind:      event.KindReaction,
		Dedupe:    "reaction:" + guid,
		Thread:    "bluebubbles:home:" + nora,
		Channel:   event.Channel{ID: nora, Type: event.ChannelDirect},
		MessageID: target,
	}
	love := tapback("love", "Loved “hello”")
	if diff := cmp.Diff(want, keys(t, "new-message", love)); diff != "" {
		t.Error(diff)
	}
	want.Thread, want.Channel = "", event.Channel{}
	if diff := cmp.Diff(want, keys(t, "updated-message", love.update())); diff != "" {
		t.Errorf("an update without a chat: %s", diff)
	}
	applied := event.Event{
		Kind:     event.KindReaction,
		Targets:  []string{target},
		Reaction: reaction("love", false),
	}
	if diff := cmp.Diff(applied, normalize(t, "new-message", love, contacts{})); diff != "" {
		t.Error(diff)
	}
}

func TestTapbackNames(t *testing.T) {
	for _, test := range []struct {
		kind    any
		text    string
		emoji   string
		removed bool
	}{
		{"love", "", "love", false},
		{"like", "", "like", false},
		{"dislike", "", "dislike", false},
		{"laugh", "", "laugh", false},
		{"emphasize", "", "emphasize", false},
		{"question", "", "question", false},
		{"sticker", "", "sticker", false},
		{"-love", "", "love", true},
		{"-question", "", "question", true},
		{2000, "", "love", false},
		{"2005", "", "question", false},
		{3001, "", "like", true},
		{"3004", "", "emphasize", true},
		{1000, "", "sticker", false},
		{"2007", "", "sticker", false},
		{"3042", "", "2042", true},

		{"2006", "Reacted 👍 to “hello”", "👍", false},
		{2006, "Reacted 👩🏽‍🌾 to “a 🌧️ day”", "👩🏽‍🌾", false},
		{"emoji", "Reacted 🇳🇱 to an image", "🇳🇱", false},
		{"2006", "Reacted 1️⃣ to “12”", "1️⃣", false},
		{"2006", "Reacted ❤ to “x”", "❤", false},
		{"2006", "Reagierte mit 🐝 auf „hallo“", "🐝", false},
		{"3006", "Removed a 👍 from “hello”", "👍", true},
		{"3006", "Removed 👍 from “hello”", "👍", true},
		{"-emoji", "Removed 👍 from “hello”", "👍", true},
		{"2006", "Reacted to “a 👍 in the words”", "emoji", false},
		{"2006", "", "emoji", false},
		{"2006", "Reacted \xff to “x”", "emoji", false},
		{"2006", "Reacted ⚡" + strings.Repeat("\u0301", 32) + " to “x”", "emoji", false},
	} {
		got := normalize(t, "new-message", tapback(test.kind, test.text), contacts{})
		want := reaction(test.emoji, test.removed)
		if diff := cmp.Diff(want, got.Reaction); diff != "" {
			t.Errorf("%v %q: %s", test.kind, test.text, diff)
		}
	}
}

// TestOtherAssociations checks that a move in a game and a message without an association are
// messages.
func TestOtherAssociations(t *testing.T) {
	for _, kind := range []any{nil, "", 0, "0", 2, "3", 999, 1001, 4000} {
		if got := keys(t, "new-message", tapback(kind, "your turn")); got.Kind != event.KindMessage {
			t.Errorf("%v: kind %s", kind, got.Kind)
		}
	}
	if got := keys(t, "message-send-error", tapback("love", "")); got.Kind != event.KindEdit {
		t.Errorf("the kind of a tapback with a send error is %s", got.Kind)
	}
}

func TestTapbackTarget(t *testing.T) {
	for _, test := range []struct {
		reference any
		part      int
		fault     bool
	}{
		{"p:0/" + target, 0, false},
		{"p:12/" + target, 12, false},
		{"bp:" + target, 0, false},
		{target, 0, false},
		{"p:x/" + target, 0, true},
		{"p:-1/" + target, 0, true},
		{"p:" + target, 0, true},
		{"p:0/", 0, true},
		{"bp:", 0, true},
		{"", 0, true},
		{nil, 0, true},
		{7, 0, true},
	} {
		data := tapback("love", "").with(fields{"associatedMessageGuid": test.reference})
		e := webhook(t, "new-message", data)
		got, err := payload.Normalizer{}.Normalize(t.Context(), e, contacts{})
		if (err != nil) != test.fault {
			t.Errorf("%v: error %v", test.reference, err)
		}
		if test.fault {
			continue
		}
		if got.Targets[0] != target || got.Reaction.Part != test.part {
			t.Errorf("%v: target %v, part %d", test.reference, got.Targets, got.Reaction.Part)
		}
	}
}

// TestReactionSender checks the sender's id and name, which are those of his messages.
func TestReactionSender(t *testing.T) {
	mine := tapback("love", "").with(fields{"isFromMe": true, "handle": nil})
	known := contacts{self: event.Self{Address: owner}}
	if got := normalize(t, "new-message", mine, known).Reaction; got.SenderID != "bb:"+owner || got.SenderName != "Me" || !*got.IsFromMe {
		t.Errorf("the sender of our own tapback is %+v", got)
	}
	named := tapback("love", "").with(fields{"handle": fields{"address": nora, "firstName": "Nora", "lastName": "Lind"}})
	if got := normalize(t, "new-message", named, known).Reaction; got.SenderName != "Nora Lind" || *got.IsFromMe {
		t.Errorf("the sender of a tapback with a name is %+v", got)
	}
}

// TestWrittenTapback reads the words that telephones without tapbacks send instead.
func TestWrittenTapback(t *testing.T) {
	for text, want := range map[string]struct {
		emoji   string
		removed bool
		quotes  event.Quotation
	}{
		"Loved “see you”":                               {"love", false, event.Quotation{Text: "see you"}},
		"Liked \"see you\"":                             {"like", false, event.Quotation{Text: "see you"}},
		"Disliked “see “you””":                          {"dislike", false, event.Quotation{Text: "see “you”"}},
		"Laughed at “see\nyou” ":                        {"laugh", false, event.Quotation{Text: "see\nyou"}},
		"Emphasized “see y…”":                           {"emphasize", false, event.Quotation{Text: "see y"}},
		"Emphasised “see y...”":                         {"emphasize", false, event.Quotation{Text: "see y"}},
		"Questioned “see y…":                            {"question", false, event.Quotation{Text: "see y"}},
		"Reacted 😀 to “see you”":                        {"😀", false, event.Quotation{Text: "see you"}},
		"Reacted with 👩🏽‍🌾 to “see you”":                {"👩🏽‍🌾", false, event.Quotation{Text: "see you"}},
		"\u200A\u200B❤️\u200B to “\u200Asee you\u200A”": {"❤️", false, event.Quotation{Text: "see you"}},
		"Removed a heart from “see you”":                {"love", true, event.Quotation{Text: "see you"}},
		"Removed a like from “see you”":                 {"like", true, event.Quotation{Text: "see you"}},
		"Removed a dislike from “see you”":              {"dislike", true, event.Quotation{Text: "see you"}},
		"Removed a laugh from “see you”":                {"laugh", true, event.Quotation{Text: "see you"}},
		"Removed an exclamation from “see you”":         {"emphasize", true, event.Quotation{Text: "see you"}},
		"Removed a question mark from “see you”":        {"question", true, event.Quotation{Text: "see you"}},
		"Removed a 👍 from “see you”":                    {"👍", true, event.Quotation{Text: "see you"}},
		"Removed 👍 from “see you”":                      {"👍", true, event.Quotation{Text: "see you"}},
		"Loved an image":                                {"love", false, event.Quotation{Media: "image/"}},
		"Liked a movie":                                 {"like", false, event.Quotation{Media: "video/"}},
		"Questioned an audio message":                   {"question", false, event.Quotation{Media: "audio/"}},
		"Reacted 🇳🇱 to an attachment":                   {"🇳🇱", false, event.Quotation{}},
		"Removed a heart from an image":                 {"love", true, event.Quotation{Media: "image/"}},
		"Hat „see you“ geliebt":                         {"love", false, event.Quotation{Text: "see you"}},
		"A aimé «\u00a0see you\u00a0»":                  {"like", false, event.Quotation{Text: "see you"}},
		"A adoré « l’été… »":                            {"love", false, event.Quotation{Text: "l’été"}},
		"N’a pas aimé « see you »":                      {"dislike", false, event.Quotation{Text: "see you"}},
		"A ri de « see you »":                           {"laugh", false, event.Quotation{Text: "see you"}},
		"Le encantó “see you”":                          {"love", false, event.Quotation{Text: "see you"}},
		"No le gustó “see you”":                         {"dislike", false, event.Quotation{Text: "see you"}},
		"“see you”を強調しました":                              {"emphasize", false, event.Quotation{Text: "see you"}},
	} {
		for _, mine := range []bool{false, true} {
			e := normalize(t, "new-message", hello().with(fields{"text": text, "isFromMe": mine}), contacts{self: event.Self{Address: owner}})
			if e.Kind != event.KindMessage || e.Message.Content != text || e.Reaction == nil {
				t.Errorf("%q: %+v", text, e)
				continue
			}
			wanted := reaction(want.emoji, want.removed)
			wanted.Quotes = &want.quotes
			if mine {
				wanted.SenderID, wanted.SenderName, wanted.IsFromMe = "bb:"+owner, "Me", new(true)
			}
			if diff := cmp.Diff(wanted, e.Reaction); diff != "" {
				t.Errorf("%q: %s", text, diff)
			}
		}
	}
	for _, text := range []string{
		"Loved it", "Loved the image", "Loved “”", "Loved see you", "I Loved “see you”", "Loved “see you” a lot", "Listen to “see you”",
		"Translate “guten Tag”", "What does “see you” mean?", "Hat „see you“ Sinn?", "Hat jemand „see you“ geliebt", "A aimé see you", "“see you”", "A aimé « »",
		"“see you”はどういう意味？", "Qui a aimé « see you »", "Le gustó “see you” a Ana", "Reacted to “see you”", "Removed the bug from “see you”", "loved “see you”", "Loved an image of you",
	} {
		if e := normalize(t, "new-message", hello().with(fields{"text": text}), contacts{}); e.Reaction != nil {
			t.Errorf("%q is the reaction %+v", text, e.Reaction)
		}
	}
	with := hello().with(fields{"text": "Loved “see you”", "attachments": []any{fields{"guid": "at_1"}}})
	if e := normalize(t, "new-message", with, contacts{}); e.Reaction != nil {
		t.Error("a message with a file is a reaction")
	}
}
