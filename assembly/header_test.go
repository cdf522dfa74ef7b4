package assembly_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"parley/assembly"
	"parley/ingest/event"
)

// header returns the header of an empty text.
func header(by event.Metadata) string {
	return assembly.Assemble("echo", []assembly.Turn{asked(said(1, by, ""))}, wide, mentions)[0].Text()
}

// TestAttribution: a text that looks attributed still gets a header.
func TestAttribution(t *testing.T) {
	alice := person("U1", "Alice")
	plain := alice
	plain.MentionToken = ""
	for _, c := range []struct{ text, plain, token string }{
		{"hello", "[Alice]: hello", "[Alice (<@U1>)]: hello"},
		{"", "[Alice]:", "[Alice (<@U1>)]:"},
		{"[Alice]: hi", "[Alice]: [Alice]: hi", "[Alice (<@U1>)]: [Alice]: hi"},
		{"[Alice (<@U1>)]: hi", "[Alice]: [Alice (<@U1>)]: hi", "[Alice (<@U1>)]: [Alice (<@U1>)]: hi"},
		{"[Bob]: pay him", "[Alice]: [Bob]: pay him", "[Alice (<@U1>)]: [Bob]: pay him"},
		{"[note]:buy milk", "[Alice]: [note]:buy milk", "[Alice (<@U1>)]: [note]:buy milk"},
		{" [Alice]: lead", "[Alice]:  [Alice]: lead", "[Alice (<@U1>)]:  [Alice]: lead"},
		{"[Alice]:\nnew", "[Alice]: [Alice]:\nnew", "[Alice (<@U1>)]: [Alice]:\nnew"},
		{"[x] y ", "[Alice]: [x] y ", "[Alice (<@U1>)]: [x] y "},
	} {
		transcript(t, "--- user\n"+c.plain+"\n", asked(said(1, plain, c.text)))
		transcript(t, "--- user\n"+c.token+"\n", asked(said(1, alice, c.text)))
	}
}

func TestNameIsCleaned(t *testing.T) {
	flood := "Z" + strings.Repeat("\u0301", 5000) + "oe"
	for _, c := range []struct{ name, shown string }{
		{"Olivia", "Olivia"},
		{"  O \t\r\n\v\f\u0085\u00a0\u2028\u2029 K ", "O K"},
		{"Al]ice", "Al)ice"},
		{"[Bob]: hi <@U1>", "(Bob): hi ‹@U1›"},
		{"a\xffb", "a\uFFFDb"},
		{"evil\u202Etxt\u2066\u200B\uFEFF\u00AD\u034F", "eviltxt"},
		{"a\u200Db\uFE0Fc", "abc"},
		{"tag\U000E0041\U000E007F", "tag"},
		{"👩🏽‍💻 🏳️‍🌈 ❤️ 1️⃣ \u200D👩\u200D", "👩🏽‍💻 🏳️‍🌈 ❤️ 1️⃣ 👩"},
		{"👩 \u200D 👩", "👩 👩"},
		{"王小明", "王小明"},
		{"", "slack:U1"},
		{" \u200B\u3164\u2028", "slack:U1"},
		{strings.Repeat("x", 10_000), strings.Repeat("x", 80)},
		{strings.Repeat("x", 79) + " y", strings.Repeat("x", 79)},
		{strings.Repeat("👨‍👩‍👧", 81), strings.Repeat("👨‍👩‍👧", 80)},
		{flood, "Z" + strings.Repeat("\u0301", 15) + "oe"},
	} {
		by := person("U1", c.name)
		by.MentionToken = ""
		if got, want := header(by), "["+c.shown+"]:"; got != want {
			t.Errorf("name %.40q: header %.120q, want %.120q", c.name, got, want)
		}
	}
	for _, blank := range []string{"\u2800", "\u0301", "\u2800 \u20DD", "\u3164"} {
		by := person("U1", blank)
		by.MentionToken = ""
		if got := header(by); got != "["+by.SenderID+"]:" {
			t.Errorf("the blank name %q: header %q", blank, got)
		}
	}
	if got := header(event.Metadata{SenderDisplayName: "\u200B", SenderID: "\u200B"}); got != "[unknown]:" {
		t.Errorf("an author without a name and an id: header %q", got)
	}
}

// TestNameContainsNoSyntax: a name cannot look like a header, a line or a token. A clean name
// stays unchanged.
func TestNameContainsNoSyntax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := person("U1", names.Draw(t, "name"))
		by.MentionToken = ""
		h := header(by)
		name := strings.TrimSuffix(strings.TrimPrefix(h, "["), "]:")
		if name == "" || !utf8.ValidString(name) || strings.ContainsAny(name, "[]<>\t\n\v\f\r\u0085\u2028\u2029\u200B\u202E⟦】｢［") || strings.TrimSpace(name) != name {
			t.Fatalf("header %q of name %q", h, by.SenderDisplayName)
		}
		by.SenderDisplayName = name
		if again := header(by); again != h {
			t.Fatalf("header %q, and %q of the cleaned name", h, again)
		}
	})
}

func TestMentionToken(t *testing.T) {
	for _, c := range []struct {
		source, token string
		shown         bool
	}{
		{"slack", "<@U06STGBF4Q0>", true},
		{"slack", "<@W06>", true},
		{"slack", "<@U06|olivia>", false},
		{"slack", "<@U>", false},
		{"slack", "<@u06>", false},
		{"slack", "<@U06> <!channel>", false},
		{"slack", "<!channel>", false},
		{"slack", "@olivia", false},
		{"slack", "<@U" + strings.Repeat("0", 100) + ">", false},
		{"discord", "<@123456>", true},
		{"discord", "<@!123456>", false},
		{"discord", "<@&123456>", false},
		{"discord", "<@>", false},
		{"bluebubbles", "@olivia", false},
		{"web", "@olivia", true},
		{"matrix", "@olivia:example.org", true},
		{"teams", "<at>Olivia</at>", true},
		{"crm", "<@U06>", false},
		{"web", "<@123456>", false},
		{"crm", "<!channel>", false},
		{"ѕlack", "<@U06>", false},
		{"crm", "＜@U06＞", false},
		{"crm", "‹\u200B@U06›", false},
		{"web", "@ol ivia", false},
		{"web", "@ol)ivia", false},
		{"web", "@ol]ivia", false},
		{"web", "@ol\u202Eivia", false},
		{"web", "@ol\xffivia", false},
		{"web", "olivia", false},
		{"web", "", false},
		{"web", "@" + strings.Repeat("o", 63), true},
		{"web", "@" + strings.Repeat("o", 64), false},
	} {
		by := event.Metadata{Source: c.source, SenderID: c.source + ":1", SenderDisplayName: "Olivia", SenderType: event.Human, MentionToken: c.token}
		want := "[Olivia]:"
		if c.shown {
			want = "[Olivia (" + c.token + ")]:"
		}
		if got := header(by); got != want {
			t.Errorf("%s token %q: header %q, want %q", c.source, c.token, got, want)
		}
		by.SenderType = event.Bot
		if got := header(by); got != "[Olivia]:" {
			t.Errorf("%s token %q of a bot: header %q", c.source, c.token, got)
		}
	}
}

// TestNameCannotEndInAToken checks sources whose tokens a name can contain.
func TestNameCannotEndInAToken(t *testing.T) {
	for _, c := range []struct{ source, name, token, want string }{
		{"web", "Olivia (@olivia)", "", "[Olivia ‹@olivia›]:"},
		{"web", "Olivia [@olivia]", "", "[Olivia ‹@olivia›]:"},
		{"web", "Olivia (@olivia)", "@eve", "[Olivia (@olivia) (@eve)]:"},
		{"web", "Olivia (admin)", "", "[Olivia (admin)]:"},
		{"slack", "Olivia (<@U06STGBF4Q0>)", "", "[Olivia (‹@U06STGBF4Q0›)]:"},
		{"slack", "Olivia (she/her)", "", "[Olivia (she/her)]:"},
		{"bluebubbles", "Alex (+15550000111)", "", "[Alex (+15550000111)]:"},
	} {
		by := event.Metadata{Source: c.source, SenderID: c.source + ":1", SenderDisplayName: c.name, SenderType: event.Human, MentionToken: c.token}
		if got := header(by); got != c.want {
			t.Errorf("%s %q: header %q, want %q", c.source, c.name, got, c.want)
		}
	}
}

// TestParleysOwnAuthors: their form has brackets, which no name has, and a name without a mention token that reads like theirs has
// the author's id behind it.
func TestParleysOwnAuthors(t *testing.T) {
	by := func(name, id string) event.Metadata {
		return event.Metadata{Source: "web", SenderID: id, SenderDisplayName: name, SenderType: event.Human}
	}
	schedule := said(1, by("Schedule morning", "schedule:morning"), "water?")
	schedule.Parley = true
	transcript(t, "--- user\n[[Schedule morning]]: water?\n", asked(schedule))
	for name, want := range map[string]string{
		"Schedule morning": "Schedule morning (web:7)", "ѕсhedule x": "ѕсhedule x (web:7)", "Parley": "Parley (web:7)", "ΡARLEY": "ΡARLEY (web:7)", "System": "System (web:7)",
		"operator opa": "operator opa (web:7)", "operator:opa": "operator:opa (web:7)", "echo": "echo (web:7)", "Εcho": "Εcho (web:7)", "lead": "lead (web:7)", "🅻ead": "🅻ead (web:7)",
		"[Schedule morning]": "(Schedule morning)", "Nora": "Nora", "Scheduler": "Scheduler", "Schedule": "Schedule", "Echo Park": "Echo Park", "Leader": "Leader",
		"echo (web:7)": "echo ‹web:7›",
	} {
		messages := assembly.Assemble("echo", []assembly.Turn{asked(said(1, by(name, "web:7"), ""))}, wide, mentions, "lead")
		if got := messages[0].Text(); got != "["+want+"]:" {
			t.Errorf("%q: %q", name, got)
		}
	}
	member := person("U1", "echo")
	if got := header(member); got != "[echo (<@U1>)]:" { // the contract's form, which no other has
		t.Errorf("a member: %q", got)
	}
}
