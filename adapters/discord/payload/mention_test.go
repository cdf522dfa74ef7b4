package payload_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
)

func TestAddressed(t *testing.T) {
	us := person(bot, "parley").with(fields{"bot": true})
	listed := fields{"mentions": []fields{person(sam, "sam"), us}}
	direct := fields{"guild_id": nil}
	ours := fields{"id": "31", "author": us, "content": "Yes."}
	theirs := fields{"id": "31", "author": person(sam, "sam"), "content": "yes"}
	tests := map[string]struct {
		data fields
		want event.Addressed
	}{
		"no mention":                {posted("hello"), event.AddressedNone},
		"token":                     {posted("well, <@900>?"), event.AddressedMention},
		"token with nickname":       {posted("<@!900> well?"), event.AddressedMention},
		"listed":                    {posted("well?").with(listed), event.AddressedMention},
		"other users":               {posted("<@202> <@9001> <@90>"), event.AddressedNone},
		"a role with our id":        {posted("<@&900>").with(fields{"mention_roles": []string{bot}}), event.AddressedNone},
		"everyone":                  {posted("@everyone @here").with(fields{"mention_everyone": true}), event.AddressedNone},
		"our name":                  {posted("parley, are you there?"), event.AddressedNone},
		"direct":                    {posted("hello").with(direct), event.AddressedDirect},
		"direct, with a mention":    {posted("<@900> hello").with(direct), event.AddressedMention},
		"group":                     {posted("hello").with(direct).with(fields{"channel_type": 3}), event.AddressedNone},
		"reply to us":               {posted("sure?").with(replying("31", ours)), event.AddressedReply},
		"reply to us, with a ping":  {posted("sure?").with(replying("31", ours)).with(listed), event.AddressedMention},
		"reply to somebody":         {posted("sure?").with(replying("31", theirs)), event.AddressedNone},
		"reply without its message": {posted("sure?").with(replying("31", nil)), event.AddressedNone},
		"our message forwarded":     {posted("").with(fields{"message_reference": fields{"type": 1, "message_id": "31"}, "message_snapshots": []fields{{"message": ours}}}), event.AddressedNone},
	}
	for name, test := range tests {
		if got := created(t, test.data).Addressed; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := normalize(t, unknown, "MESSAGE_CREATE", posted("<@> <@!>")).Message.Addressed; got != event.AddressedNone {
		t.Errorf("addressed is %q before our identity is known", got)
	}
}

// TestMentionInCode: a token in code mentions nobody, however the code is written.
func TestMentionInCode(t *testing.T) {
	for content, want := range map[string]event.Addressed{
		"`<@900>`": "", "``<@!900>``": "", "what does `ping <@900>` do": "", "```\n<@900>\n```": "", "```py\nx = '<@900>'\n```\nthanks": "",
		"`` ` <@900> ``": "", "`a` <@900> `b`": event.AddressedMention, "`<@900>": event.AddressedMention, "``<@900>`": event.AddressedMention,
		"\\`<@900>`": event.AddressedMention, "`\\`<@900>`": event.AddressedMention, "`x` `y": "", "`<@900>` <@!900>": event.AddressedMention,
		"```<@900>": event.AddressedMention, strings.Repeat("`", 33) + "<@900>" + strings.Repeat("`", 33): event.AddressedMention,
	} {
		if got := created(t, posted(content)).Addressed; got != want {
			t.Errorf("%q: %q, want %q", content, got, want)
		}
	}
	us := person(bot, "parley").with(fields{"bot": true})
	listed := posted("`<@900>`").with(fields{"mentions": []fields{us}})
	if got := created(t, listed).Addressed; got != event.AddressedNone {
		t.Errorf("a token in code counts, because Discord lists its user: %q", got)
	}
	if got := created(t, listed.with(replying("31", fields{"id": "31", "author": us, "content": "Yes."}))).Addressed; got != event.AddressedReply {
		t.Errorf("a reply to us with a token in code: %q", got)
	}
	if !created(t, posted("run `<@202>`").with(fields{"position": 3})).FollowUp {
		t.Error("a token in code counts as a mention of another user")
	}
}

func TestReply(t *testing.T) {
	quoted := fields{
		"id": "31", "channel_id": room, "author": person(sam, "sam").with(fields{"global_name": "Sam [x]\n"}),
		"content": "<@900>  twelve ", "attachments": []fields{{"id": "41", "filename": "rows.jpg"}},
		"sticker_items": []fields{{"id": "51", "name": "Wave", "format_type": 1}},
	}
	m := created(t, posted("sure?").with(replying("31", quoted)))
	want := &event.Quote{ExternalID: "31", Name: "Sam [x]\n", MentionToken: "<@202>", SenderID: "discord:202", SenderType: event.Human, Content: "<@900>  twelve ", Files: 2,
		Attached: []event.Attachment{{ID: "41", Name: "rows.jpg"}, {ID: "51", Name: "Wave", MimeType: "image/png"}}}
	if diff := cmp.Diff(want, m.Quoted); diff != "" || m.ReplyTo != "31" {
		t.Errorf("in reply to %q: %s", m.ReplyTo, diff)
	}
	if m.Content != "sure?" || len(m.Attachments) > 0 {
		t.Errorf("the quoted text became content: %+v", m)
	}
}

func TestReplyToUs(t *testing.T) {
	ours := fields{"id": "31", "author": person(bot, "parley").with(fields{"bot": true}), "content": "Yes."}
	want := &event.Quote{ExternalID: "31", Name: "parley", SenderID: "discord:900", SenderType: event.Bot, Content: "Yes.", Own: true}
	if diff := cmp.Diff(want, created(t, posted("sure?").with(replying("31", ours))).Quoted); diff != "" {
		t.Error(diff)
	}
}

// TestQuotedNickname checks that a quoted author's nickname comes from the mentions. Discord
// sends it only if the reply pings the author.
func TestQuotedNickname(t *testing.T) {
	quoted := fields{"id": "31", "author": person(sam, "sam"), "content": "twelve"}
	pinged := person(sam, "sam").with(fields{"member": fields{"nick": "Sammy"}})
	m := created(t, posted("sure?").with(replying("31", quoted)).with(fields{"mentions": []fields{pinged}}))
	if m.Quoted.Name != "Sammy" {
		t.Errorf("quoted as %q", m.Quoted.Name)
	}
}

func TestReplyWithoutQuotedMessage(t *testing.T) {
	for name, referenced := range map[string]any{"deleted": null, "absent": nil} {
		m := created(t, posted("sure?").with(replying("31", referenced)))
		if m.Quoted != nil || m.ReplyTo != "31" {
			t.Errorf("%s: the reply is to %q and quotes %+v", name, m.ReplyTo, m.Quoted)
		}
	}
}

// TestFollowUp checks which messages continue a thread. Only messages of threads and forum
// posts have a position.
func TestFollowUp(t *testing.T) {
	in := fields{"position": 3}
	for name, c := range map[string]struct {
		content string
		more    fields
		want    bool
	}{
		"in a thread":    {"and then?", in, true},
		"by its type":    {"and then?", fields{"channel_type": 11}, true},
		"in a channel":   {"and then?", nil, false},
		"somebody else":  {"<@202> and then?", in, false},
		"a role":         {"<@&7> and then?", in, false},
		"everybody":      {"@everyone and then?", in.with(fields{"mention_everyone": true}), false},
		"a pinged reply": {"and then?", in.with(fields{"mentions": []fields{{"id": "202"}}}), false},
	} {
		if got := created(t, posted(c.content).with(c.more)).FollowUp; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestForward(t *testing.T) {
	m := created(t, posted("").with(fields{
		"flags":             16384,
		"message_reference": fields{"type": 1, "channel_id": "30", "message_id": "31"},
		"message_snapshots": []fields{{"message": fields{
			"type": 0, "content": "frost tonight", "timestamp": sentAt,
			"attachments": []fields{{"id": "41", "filename": "map.png"}},
		}}},
	}))
	if diff := cmp.Diff([]event.Quote{{ExternalID: "31", Content: "frost tonight", Files: 1, Channel: "30", Attached: []event.Attachment{{ID: "41", Name: "map.png"}}}}, m.Forwarded); diff != "" {
		t.Error(diff)
	}
	if m.Content != "" || m.ReplyTo != "" || m.Quoted != nil || len(m.Attachments) > 0 {
		t.Errorf("the forwarded text became part of %+v", m)
	}
}

// TestReferencesThatAreNotReplies checks messages that refer to another message without
// replying to it.
func TestReferencesThatAreNotReplies(t *testing.T) {
	other := fields{"id": "31", "author": person(sam, "sam"), "content": "twelve"}
	for name, more := range map[string]fields{
		"copied from a followed channel": {"type": 0, "flags": 2, "webhook_id": "502"},
		"a bot's answer to a command":    {"type": 23},
	} {
		m := created(t, posted("news").with(replying("31", other)).with(more))
		if m.ReplyTo != "" || m.Quoted != nil {
			t.Errorf("%s: the reply is to %q and quotes %+v", name, m.ReplyTo, m.Quoted)
		}
	}
}

// TestNamesOfTokens: the payload has the names of the users that it mentions, of the channels of a message
// that was passed on from another server, and of all that a command mentions. Names of other tokens are none.
func TestNamesOfTokens(t *testing.T) {
	samuel := person(sam, "sam").with(fields{"global_name": "Samuel"})
	inShed := samuel.with(fields{"member": fields{"nick": "Sam (shed)"}})
	quoted := fields{"id": "31", "author": person(nora, "nora"), "content": "and <@202>", "mentions": []fields{samuel}}
	m := created(t, posted("<@!202> <#11> <@299> <@&5>").with(fields{
		"mentions": []fields{inShed, person(nora, "nora")}, "mention_channels": []fields{{"id": "11", "name": "tools"}},
	}).with(replying("31", quoted)))
	if diff := cmp.Diff(event.Names{"<@!202>": "Sam (shed)", "<#11>": "tools"}, m.Names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(event.Names{"<@202>": "Samuel"}, m.Quoted.Names); diff != "" {
		t.Error(diff)
	}
	asked := fields{
		"id": sentID, "type": 2, "channel_id": room, "guild_id": guild, "member": fields{"user": person(nora, "nora")},
		"data": fields{
			"type": 1, "name": "ask", "options": []fields{{"name": "question", "value": "<@202> of <@&5> in <#11>, not <@299>"}},
			"resolved": fields{
				"users": fields{sam: samuel}, "members": fields{sam: fields{"nick": "Sam (shed)"}},
				"roles": fields{"5": fields{"name": "growers"}}, "channels": fields{"11": fields{"name": "tools"}},
			},
		},
	}
	if diff := cmp.Diff(event.Names{"<@202>": "Sam (shed)", "<@&5>": "growers", "<#11>": "tools"}, normalize(t, known, "INTERACTION_CREATE", asked).Message.Names); diff != "" {
		t.Error(diff)
	}
	if m := normalize(t, known, "MESSAGE_UPDATE", edited("<@202>!").with(fields{"mentions": []fields{inShed}})).Message; m.Names["<@202>"] != "Sam (shed)" {
		t.Errorf("an edit has the names %q", m.Names)
	}
}
