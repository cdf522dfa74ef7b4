package payload_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/words"
	"parley/ingest/event"
)

// alert is the embed of an app.
var alert = fields{
	"type": "rich", "title": "Disk full", "description": "host pump-3\n97 %", "url": "https://example.org/alerts/7",
	"fields": []fields{{"name": "severity", "value": "page"}, {"name": "", "value": "since 14:00"}},
	"footer": fields{"text": "watchdog"},
}

const alertWords = "Disk full\nhost pump-3\n97 %\nseverity: page\nsince 14:00\nwatchdog"

// display returns a text display, and inside a component with components.
func display(text string) fields { return fields{"type": 10, "content": text} }
func inside(kind int, components ...fields) fields {
	return fields{"type": kind, "components": components}
}

// TestWords checks what a person sees of a message, by its parts, of a bot and of a person.
func TestWords(t *testing.T) {
	app := fields{"author": person("300", "watch").with(fields{"bot": true})}
	hook := fields{"webhook_id": "501", "author": person("501", "watch")}
	preview := func(kind string) fields { return alert.with(fields{"type": kind}) }
	layout := []fields{
		display("first"),
		inside(17, display("second"), inside(9, display("third")).with(fields{"accessory": fields{"type": 2, "label": "Go"}}), inside(1, fields{"type": 2, "label": "Press"})),
		display("last"),
	}
	for name, c := range map[string]struct {
		content string
		more    fields
		want    string
	}{
		"an embed":                              {"", app.with(fields{"embeds": []fields{alert}}), alertWords},
		"an embed without a type":               {"", hook.with(fields{"embeds": []fields{alert.with(fields{"type": nil})}}), alertWords},
		"a person's embed":                      {"", fields{"embeds": []fields{alert}}, alertWords},
		"an embed beside text":                  {"look", hook.with(fields{"embeds": []fields{alert}}), "look\n" + alertWords},
		"an embed beside a person's text":       {"look", fields{"embeds": []fields{alert}}, "look"},
		"previews":                              {"", app.with(fields{"embeds": []fields{preview("link"), preview("article"), preview("video"), preview("image"), preview("gifv")}}), ""},
		"a preview and an embed":                {"see https://example.org", app.with(fields{"embeds": []fields{preview("article"), {"type": "rich", "title": "Up"}}}), "see https://example.org\nUp"},
		"text displays":                         {"", app.with(fields{"flags": 1 << 15, "components": layout}), "first\nsecond\nthird\nlast"},
		"text displays before embeds":           {"", app.with(fields{"components": layout[:1], "embeds": []fields{alert}}), "first"},
		"buttons below typed text":              {"typed", app.with(fields{"components": layout}), "typed"},
		"a poll is typed":                       {"", fields{"poll": fields{"question": fields{"text": "What?"}}, "embeds": []fields{alert}}, "What?"},
		"white space is typed":                  {" ", fields{"embeds": []fields{alert}}, " "},
		"faults in fields that nobody needs":    {"", app.with(fields{"components": "none", "embeds": []any{5, fields{"title": 5, "description": "words", "fields": []any{nil}, "footer": "x"}}}), ""},
		"a faulty embed that is a list of some": {"", app.with(fields{"embeds": []fields{{"title": 5, "description": "words", "fields": 7, "footer": "x"}}}), "words"},
	} {
		m := created(t, posted(c.content).with(c.more))
		if m.Content != c.want || len(m.Attachments) > 0 {
			t.Errorf("%s: the words are %q, want %q", name, m.Content, c.want)
		}
	}
}

// TestWordsEverywhere: an edit, a quotation, a forward and a command on a message have the same words.
func TestWordsEverywhere(t *testing.T) {
	app := fields{"author": person("300", "watch").with(fields{"bot": true}), "embeds": []fields{alert}}
	if got := normalize(t, known, "MESSAGE_UPDATE", edited("").with(app)).Message.Content; got != alertWords {
		t.Errorf("edited: %q", got)
	}
	if got := created(t, posted("why?").with(replying("31", app.with(fields{"id": "31", "content": "look"})))).Quoted.Content; got != "look\n"+alertWords {
		t.Errorf("quoted: %q", got)
	}
	shown := fields{"message": fields{"content": "look", "embeds": []fields{alert}}}
	laid := fields{"message": fields{"content": "", "components": []fields{inside(17, display("laid out"))}}}
	m := created(t, posted("").with(fields{"message_reference": fields{"type": 1, "guild_id": "77"}, "message_snapshots": []fields{shown, laid}}))
	if diff := cmp.Diff([]event.Quote{{Content: "look\n" + alertWords, Server: "77"}, {Content: "laid out", Server: "77"}}, m.Forwarded); diff != "" {
		t.Errorf("forwarded: %s", diff)
	}
}

// TestWordsAreBounded covers components that are nested deep, and embeds with long texts.
func TestWordsAreBounded(t *testing.T) {
	nested := func(levels int) fields {
		c := display("deep")
		for range levels - 1 {
			c = inside(17, c)
		}
		return fields{"components": []fields{c}}
	}
	if got := created(t, posted("").with(nested(words.MaxLevels))).Content; got != "deep" {
		t.Errorf("at the bound: %q", got)
	}
	if got := created(t, posted("").with(nested(words.MaxLevels+1))).Content; got != "" {
		t.Errorf("below the bound: %q", got)
	}
	long := alert.with(fields{"description": strings.Repeat("é", 4096)})
	got := created(t, posted("").with(fields{"embeds": []fields{long, long, long}})).Content
	if !strings.HasSuffix(got, "é…") || len(got) > words.MaxBytes+len("…") {
		t.Errorf("three long embeds have %d bytes and end with %q", len(got), got[len(got)-5:])
	}
}
