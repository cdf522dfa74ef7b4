package payload_test

import (
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/slack/payload"
	"parley/adapters/words"
	"parley/ingest/event"

	"github.com/google/go-cmp/cmp"
)

func mrkdwn(s string) object { return object{"type": "mrkdwn", "text": s} }
func plainText(s string) object {
	return object{"type": "plain_text", "text": s}
}

// rich returns a rich_text block.
func rich(elements ...object) object { return object{"type": "rich_text", "elements": elements} }

// part returns an element of a rich_text block.
func part(kind string, elements ...object) object {
	return object{"type": "rich_text_" + kind, "elements": elements}
}
func run(s string) object { return object{"type": "text", "text": s} }

// wordsOf returns the content of Mara's message with the given members.
func wordsOf(t *testing.T, more object) string {
	t.Helper()
	return messageOf(t, messageEvent("", more), fakeDirectory{self: us}).Content
}

func TestWordsOfAMessageWithoutTypedText(t *testing.T) {
	section := object{"type": "section", "text": mrkdwn("3 &lt; 4 tests")}
	picture := object{"type": "image", "image_url": "https://example.com/a.png", "alt_text": "the well <b>"}
	alert := object{"pretext": "Report", "title": "Disk", "title_link": "https://example.com", "text": "host-7", "fallback": "disk", "color": "bad",
		"fields": []object{{"title": "Host", "value": "db1", "short": true}, {"title": "Free", "value": 2}, {"value": "alone"}}}
	for name, c := range map[string]struct {
		more object
		want string
	}{
		"typed text is all":         {object{"text": "typed", "blocks": []object{section}, "attachments": []object{alert}}, "typed"},
		"white space is no text":    {object{"text": " ", "blocks": []object{section}}, "3 < 4 tests"},
		"white space alone is kept": {object{"text": " "}, " "},
		"Slack's text for blocks":   {object{"text": "This content can't be displayed.", "blocks": []object{section}}, "3 < 4 tests"},
		"Slack's text beside files": {object{"text": "This message contains interactive elements.", "attachments": []object{alert}}, "Report\nDisk\nhost-7\nHost: db1\nFree: 2\nalone"},
		"Slack's text alone":        {object{"text": "This content can't be displayed.", "blocks": []object{{"type": "divider"}}}, "This content can't be displayed."},
		"blocks before attachments": {object{"blocks": []object{section}, "attachments": []object{alert}}, "3 < 4 tests"},
		"an alert":                  {object{"attachments": []object{alert}}, "Report\nDisk\nhost-7\nHost: db1\nFree: 2\nalone"},
		"blocks of an attachment":   {object{"attachments": []object{{"fallback": "[no preview available]", "blocks": []object{section, {"type": "divider"}}}}}, "3 < 4 tests"},
		"a fallback":                {object{"attachments": []object{{"fallback": "see <https://ci.example/9|the log>"}}}, "see [the log](https://ci.example/9)"},
		"a picture alone":           {object{"blocks": []object{picture, {"type": "context", "elements": []object{picture}}}}, "the well <b>"},
		"a picture above an alert":  {object{"blocks": []object{picture}, "attachments": []object{{"title": "Disk"}}}, "Disk"},
		"nothing to see":            {object{"blocks": []object{{"type": "divider"}}, "attachments": []object{{"fallback": "[no preview available]"}, {"fallback": "This message contains interactive elements."}}}, ""},
		"empty leading elements": {object{"blocks": []object{rich(part("section")), {"type": "section", "text": mrkdwn("")}, section},
			"attachments": []object{{}, alert}}, "3 < 4 tests"},
		"an empty leading attachment": {object{"blocks": []object{}, "attachments": []object{{"text": " "}, {"text": "words"}}}, "words"},
		"unfurls": {object{"attachments": []object{{"from_url": "https://example.com", "title": "a page"}, {"original_url": "https://example.com", "title": "a page"},
			{"is_app_unfurl": true, "text": "of an app"}, {"is_msg_unfurl": true, "text": "a message"}}}, ""},
		"blocks of an odd form":      {object{"blocks": []any{7, "x", nil, object{"type": 7, "text": 8}, object{"text": mrkdwn("seen")}}}, "seen"},
		"attachments of an odd form": {object{"attachments": []any{7, object{"title": 7, "text": "seen", "fields": 7}}}, "seen"},
	} {
		if got := wordsOf(t, c.more); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		app := object{"user": nil, "bot_id": "B1"}
		for key, value := range c.more {
			app[key] = value
		}
		if got := wordsOf(t, app); got != c.want {
			t.Errorf("%s, by an app: %q, want %q", name, got, c.want)
		}
	}
}

func TestWordsOfBlocks(t *testing.T) {
	button := object{"type": "button", "text": plainText("Silence"), "value": "v", "url": "https://example.com", "confirm": object{"title": plainText("Sure?")}}
	for name, c := range map[string]struct {
		block object
		want  string
	}{
		"a header": {object{"type": "header", "text": plainText("R&D <@U1>")}, "R&D <@U1>"},
		"a section": {object{"type": "section", "block_id": "b", "text": mrkdwn("Disk"), "fields": []object{mrkdwn("Since"), mrkdwn("09:00")},
			"accessory": button}, "Disk\nSince\n09:00\nSilence"},
		"a context":  {object{"type": "context", "elements": []object{{"type": "image", "image_url": "https://example.com/a.png", "alt_text": "a"}, mrkdwn("by cron")}}, "by cron"},
		"Markdown":   {object{"type": "markdown", "text": "all *green*"}, "all *green*"},
		"an actions": {object{"type": "actions", "elements": []object{button, {"type": "button", "text": plainText("Open")}}}, "Silence\nOpen"},
		"an image":   {object{"type": "image", "title": plainText("The well"), "image_url": "https://example.com/a.png", "alt_text": "a"}, "The well"},
		"a menu": {object{"type": "actions", "elements": []object{{"type": "static_select", "placeholder": plainText("Choose"),
			"initial_option": object{"text": plainText("one"), "value": "1"}, "options": []object{{"text": plainText("two")}}}}}, "Choose\none"},
		"a list of choices": {object{"type": "input", "label": plainText("Which?"), "element": object{"type": "radio_buttons", "options": []object{{"text": plainText("this")}, {"text": plainText("that")}}}},
			"Which?\nthis\nthat"},
		"a table": {object{"type": "table", "rows": []any{
			[]object{{"type": "raw_text", "text": "host"}, {"type": "raw_text", "text": "free <b>"}},
			[]object{rich(part("section", run("db1 "), object{"type": "user", "user_id": "U1"})), {"type": "raw_text", "text": "two\nlines"}},
			[]object{{"type": "raw_text", "text": ""}, {"type": "raw_text", "text": "2 %"}},
		}}, "host | free <b>\ndb1 <@U1> | two lines\n | 2 %"},
		"a data table": {object{"type": "data_table", "caption": "Hosts", "rows": []any{
			[]object{{"type": "raw_text", "text": "host"}, {"type": "raw_text", "text": "free"}},
			[]object{{"type": "raw_text", "text": "db1"}, {"type": "raw_number", "value": 2, "text": "2 %"}},
		}}, "Hosts\nhost | free\ndb1 | 2 %"},
		"rows of another form": {object{"type": "later", "rows": []object{{"text": "one"}, {"text": plainText("two")}}}, "one\ntwo"},
		"an unknown block": {object{"type": "card", "style": "big", "id": "c1", "title": plainText("Build"), "subtitle": "of today",
			"sections": []object{{"body": mrkdwn("all &lt;green&gt;"), "url": "https://example.com"}}}, "Build\nof today\nall <green>"},
	} {
		if got := wordsOf(t, object{"blocks": []object{c.block}}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWordsOfRichText(t *testing.T) {
	list := func(style string, indent, offset int, items ...string) object {
		out := object{"type": "rich_text_list", "style": style, "indent": indent, "offset": offset}
		elements := []object{}
		for _, item := range items {
			elements = append(elements, part("section", run(item)))
		}
		out["elements"] = elements
		return out
	}
	got := wordsOf(t, object{"blocks": []object{rich(
		part("section", run("3 < 4 &amp; "), object{"type": "user", "user_id": "U1"}, run(", "), object{"type": "emoji", "name": "tomato"}),
		part("section", object{"type": "link", "url": "https://example.com/?a=1&b=2"}, run(" "), object{"type": "link", "url": "https://example.com", "text": "a page"}),
		part("section", object{"type": "channel", "channel_id": "C1"}, object{"type": "usergroup", "usergroup_id": "S1"}, object{"type": "broadcast", "range": "here"},
			object{"type": "date", "fallback": "noon"}, object{"type": "user", "user_id": "U1> <!here"}, object{"type": "color", "value": "#fff"}, run("\n")),
		list("bullet", 0, 0, "one", "two"), list("bullet", 1, 0, "inside"), list("bullet", 2, 0, "deep"),
		list("ordered", 0, 2, "three", "four"), list("ordered", 1, 0, "a letter"), list("ordered", 2, 3, "a numeral"), list("ordered", 1, 26, "no letter left"),
		part("quote", run("said\nbefore")), part("preformatted", run("go run .")),
		object{"type": "rich_text_section", "elements": "none"}, part("later_kind", run("of later")),
		part("section", object{"type": "work_object_mention", "url": "https://example.com/1", "text": "a pump"}, object{"type": "attachment_mention", "url": "https://example.com/2"},
			object{"type": "canvas", "file_id": "F1", "label": "a plan"}),
	)}})
	want := "3 < 4 &amp; <@U1>, :tomato:\nhttps://example.com/?a=1&b=2 [a page](https://example.com)\n<#C1><!subteam^S1><!here>noon#fff\n" +
		"• one\n• two\n    ◦ inside\n        ▪ deep\n3. three\n4. four\n    a. a letter\n        iv. a numeral\n    27. no letter left\n" +
		"> said\n> before\n```\ngo run .\n```\nof later\n[a pump](https://example.com/1)https://example.com/2a plan"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestMentionsInBlocks: a mention is one wherever a person sees it, also beside a text. A typed text
// that looks like a mention is none.
func TestMentionsInBlocks(t *testing.T) {
	mention := rich(part("section", object{"type": "user", "user_id": "UPARLEY01"}, run(" only blocks here")))
	nested := object{"attachments": []object{{"blocks": []object{{"type": "section", "text": mrkdwn("<@UPARLEY01|parley> look")}}}}}
	for name, c := range map[string]struct {
		more object
		want event.Addressed
	}{
		"in blocks alone":           {object{"blocks": []object{mention}}, event.AddressedMention},
		"beside a text":             {object{"text": "a notice", "blocks": []object{mention}}, event.AddressedMention},
		"in an attachment":          {nested, event.AddressedMention},
		"a plain text":              {object{"blocks": []object{{"type": "header", "text": plainText("<@UPARLEY01>")}}}, event.AddressedNone},
		"a text in a rich text":     {object{"blocks": []object{rich(part("section", run("<@UPARLEY01>")))}}, event.AddressedNone},
		"of somebody else":          {object{"blocks": []object{rich(part("section", object{"type": "user", "user_id": "U2"}))}}, event.AddressedNone},
		"in a forwarded message":    {object{"attachments": []object{{"is_share": true, "text": "<@UPARLEY01>"}}}, event.AddressedNone},
		"behind the greatest level": {object{"blocks": []object{deep(words.MaxLevels+1, mention)}}, event.AddressedNone},
	} {
		body := eventCallback(messageEvent("", c.more))
		if got := messageOf(t, body, fakeDirectory{self: us}).Addressed; got != c.want {
			t.Errorf("%s: addressed %q, want %q", name, got, c.want)
		}
		if c.want == event.AddressedMention {
			if keys := keysOf(t, messageEvent("", c.more), fakeDirectory{}); keys.Needs != "user" || keys.AltKey == "" {
				t.Errorf("%s: the keys need %q and have the second key %q", name, keys.Needs, keys.AltKey)
			}
		}
	}
}

// deep returns a block inside containers.
func deep(levels int, block object) object {
	for range levels {
		block = object{"type": "container", "blocks": []object{block}}
	}
	return block
}

func TestDerivedWordsAreBounded(t *testing.T) {
	section := object{"type": "section", "text": mrkdwn("deep")}
	for levels, want := range map[int]string{words.MaxLevels - 1: "deep", words.MaxLevels: ""} {
		if got := wordsOf(t, object{"blocks": []object{deep(levels, section)}}); got != want {
			t.Errorf("inside %d blocks: %q, want %q", levels, got, want)
		}
	}
	element := run("deep")
	for range 1000 {
		element = object{"type": "rich_text_section", "elements": []object{element}}
	}
	if got := wordsOf(t, object{"blocks": []object{rich(element)}}); got != "" {
		t.Errorf("inside 1000 elements: %q", got)
	}
	for name, more := range map[string]object{
		"blocks":      {"blocks": []object{{"type": "section", "text": mrkdwn(strings.Repeat("&lt;", words.MaxBytes+1))}}},
		"attachments": {"attachments": []object{{"text": strings.Repeat("&lt;", words.MaxBytes+1), "title": ""}}},
		"a forward":   {"attachments": []object{{"is_share": true, "text": strings.Repeat("&lt;", words.MaxBytes+1)}}},
	} {
		m := messageOf(t, messageEvent("", more), fakeDirectory{self: us})
		got := m.Content
		for _, q := range m.Forwarded {
			got += q.Content
		}
		if want := strings.Repeat("<", words.MaxBytes) + "…"; got != want {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(want))
		}
	}
	typed := strings.Repeat("a", words.MaxBytes+1)
	if got := wordsOf(t, object{"text": typed}); got != typed {
		t.Errorf("a typed text of %d bytes has %d", len(typed), len(got))
	}
}

// TestEditsOfBlocks: an app changes its blocks, and Slack adds an unfurl to a message with blocks.
func TestEditsOfBlocks(t *testing.T) {
	state := func(words string, more object) object {
		out := messageEvent("", object{"edited": object{"ts": "1750000009.000000"}, "blocks": []object{{"type": "section", "text": mrkdwn(words)}}})
		for key, value := range more {
			out[key] = value
		}
		return out
	}
	edit := func(before, now object) object {
		return object{"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1750000010.000000", "message": now, "previous_message": before}
	}
	changed := normalized(t, edit(state("90 %", nil), state("98 %, <@UPARLEY01>", nil)), fakeDirectory{self: us})
	if m := changed.Message; m == nil || m.Content != "98 %, <@UPARLEY01>" || m.Addressed != event.AddressedMention {
		t.Errorf("an edit of blocks is %+v", changed)
	}
	unfurled := edit(state("90 %", nil), state("90 %", object{"attachments": []object{{"from_url": "https://example.com", "text": "a page"}}}))
	if keys := keysOf(t, unfurled, fakeDirectory{self: us}); keys.Result == nil || keys.Result.Reason != event.ReasonNoChange {
		t.Errorf("an unfurl beside blocks is %+v", keys)
	}
}

// TestWordsOfForwards: a forward brings the words of the message, also those in its blocks, and its
// attachments. The other attachments are unfurls of typed links.
func TestWordsOfForwards(t *testing.T) {
	blocks := []object{rich(part("section", run("in blocks")))}
	for name, c := range map[string]struct {
		share object
		want  string
	}{
		"text":                  {object{"text": "the well is &lt;dry&gt;", "message_blocks": []object{{"message": object{"blocks": blocks}}}}, "the well is <dry>"},
		"blocks":                {object{"text": "", "message_blocks": []object{{"team": "T1", "channel": "C9", "ts": "1.2", "message": object{"blocks": blocks}}}}, "in blocks"},
		"blocks of its own":     {object{"blocks": blocks}, "in blocks"},
		"blocks alone":          {object{"text": "This content can't be displayed.", "message_blocks": []object{{"message": object{"blocks": blocks}}}}, "in blocks"},
		"an alert":              {object{"pretext": "Report", "title": "Disk", "fields": []object{{"title": "Host", "value": "db1"}}}, "Report\nDisk\nHost: db1"},
		"words and an embed":    {object{"text": "look", "attachments": []object{{"title": "card", "text": "embedded report"}}}, "look\ncard\nembedded report"},
		"a forward":             {object{"text": "look", "attachments": []object{{"is_share": true, "is_msg_unfurl": true, "text": "of a forward"}}}, "look\nof a forward"},
		"with a preview":        {object{"text": "look", "attachments": []object{{"from_url": "https://example.com", "text": "a page"}}}, "look"},
		"a file":                {object{"fallback": "[June 15th] tomas: ", "files": []object{{"id": "F1", "name": "a.png"}}}, ""},
		"nothing but a summary": {object{"fallback": "[June 15th] tomas: dry"}, "[June 15th] tomas: dry"},
	} {
		c.share["is_share"] = true
		m := messageOf(t, messageEvent("", object{"attachments": []object{c.share}}), fakeDirectory{self: us})
		if len(m.Forwarded) != 1 || m.Forwarded[0].Content != c.want || m.Content != "" {
			t.Errorf("%s: content %q, forwarded %+v", name, m.Content, m.Forwarded)
		}
	}
}

// TestFieldsThatNoMessageNeeds: Slack may send any form of a field that the message does not need.
func TestFieldsThatNoMessageNeeds(t *testing.T) {
	got := messageOf(t, messageEvent("hi", object{"user_profile": 7, "edited": "no", "root": 1, "username": 4, "client_msg_id": 3, "metadata": "m",
		"files": []object{{"id": "F1", "name": "a.png", "size": 1.5}}}), fakeDirectory{self: us, users: map[string]adapters.User{"UMARA0001": {DisplayName: "Mara"}}})
	want := []event.Attachment{{ID: "F1", Name: "a.png", Size: 1}}
	if diff := cmp.Diff(want, got.Attachments); got.Content != "hi" || got.Metadata.SenderDisplayName != "Mara" || diff != "" {
		t.Errorf("%+v %s", got, diff)
	}
	callback := eventCallback(messageEvent("hi", nil))
	callback["event_id"], callback["authed_users"], callback["context_team_id"] = 7, "none", 8
	if keys := (payload.Normalizer{}).Keys(envelopeOf(t, callback), fakeDirectory{self: us}); keys.Result != nil {
		t.Errorf("a callback with odd fields is %+v", keys.Result)
	}
}

// TestCarriedMessages: a payload names every message whose words it has, so that a delete of one of
// them empties it.
func TestCarriedMessages(t *testing.T) {
	const ts = "1750000000.00009"
	shared := messageEvent("see", object{"root": object{"user": "U1", "ts": ts + "0"}, "attachments": []object{
		{"is_share": true, "channel_id": "C2", "ts": ts + "1", "text": "a", "attachments": []object{{"is_share": true, "channel_id": "C3", "ts": ts + "2", "text": "b"}}},
		{"is_msg_unfurl": true, "from_url": "https://acme.slack.example", "channel_id": "C4", "ts": ts + "3", "text": "c"}, {"text": "no message", "ts": 7},
	}})
	want := []string{"C1/" + ts + "0", "C2/" + ts + "1", "C4/" + ts + "3", "C3/" + ts + "2"}
	shortcut := object{"type": "message_action", "callback_id": "ask", "trigger_id": "1.2", "user": object{"id": "UMARA0001"}, "channel": object{"id": "C1"}, "message": shared}
	for name, body := range map[string]object{"a message": shared, "a shortcut": shortcut} {
		if diff := cmp.Diff(want, normalized(t, body, fakeDirectory{self: us}).Carries); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
