package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/event"
)

// functions are those of the templates.
var functions = template.FuncMap{
	"bytes": func(n int64) string { return humanize.Bytes(uint64(n)) },
	"count": func(n int64, thing string) string { return english.Plural(int(n), thing, "") },
	"look":  look, "nothing": nothing, "ms": ms, "act": newAct, "field": newField, "list": func(f ...field) []field { return f },
	"author": author, "channel": channel, "kind": operator.KindWords, "inside": inside, "took": took, "isDate": isDate, "after": func(seq int64) int64 { return seq + 1 }, "short": short, "pretty": pretty,
	"comma": humanize.Comma, "tokens": tokens,
}

// looks has the look of each state: colour and shape.
var looks = map[string]string{
	"up": "well", "ready": "well", "ok": "well", "done": "well", "run": "well", "sent": "well", "idle": "well", "answered": "well", "quiet": "well", "posted": "well", "skipped": "warn", "paused": "off",
	"starting": "busy", "working": "busy", "running": "busy", "queued": "busy", "pending": "busy", "sending": "busy", "standby": "off", "stopped": "off", "dropped": "off", "discarded": "off",
	"success": "well", "cancelled": "off", "asking": "warn", "stored": "well", "settled": "well", "error": "bad", "context": "off", "note": "well", "fault": "bad", "warning": "warn", "not ready": "bad", "ignored": "off", "failing": "bad", "failed": "bad", "refused": "bad", "dead": "bad", "down": "bad", "unknown": "warn", "waiting": "warn",
}

// look returns the class of a state. A state that is not known looks neutral.
func look(state any) string {
	if class, ok := looks[fmt.Sprint(state)]; ok {
		return class
	}
	return "off"
}

// inside returns the address of a page, such as /threads?before=7, below the base of the session.
func inside(page string) string { return "." + page }

func nothing(n operator.Needs) bool { return n == operator.Needs{} }

// ms returns the time between two moments; "" if one of them has not come.
func ms(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	return took(to.Sub(from).Milliseconds())
}

// took returns a number of milliseconds in words.
func took(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}

// pretty returns a payload with a line for each member; as it is if it is no JSON.
func pretty(payload *string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(*payload), "", "  ") != nil {
		return *payload
	}
	return out.String()
}

// short returns the end of a UUID, which tells it from others.
func short(text any) string {
	id := fmt.Sprint(text)
	if len(id) != 36 {
		return id
	}
	return "…" + id[24:]
}

// channel returns the words for a channel: its name with #, what it is if it is no room, or else its id.
func channel(name, id string, kind event.ChannelType) string {
	switch {
	case name != "":
		return "#" + strings.TrimPrefix(name, "#")
	case kind == event.ChannelDirect:
		return "direct message"
	case kind == event.ChannelGroup:
		return "group message"
	}
	return id
}

// isDate reports whether a text is empty or a date, which a field for dates can show; other times are text.
func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return text == "" || err == nil
}

// act is an operation that a page offers.
type act struct {
	Test, Path, Name, Words string
	Fields                  []field
	May                     bool // the caller's role allows it
}

// field is something that the operator enters, or a hidden value.
type field struct {
	Name, Label, Value string
	Required, Hidden   bool
}

func newField(name, label string, required bool) field {
	return field{Name: name, Label: label, Required: required}
}

func newAct(may bool, test, path, name, words string, fields ...[]field) act {
	a := act{May: may, Test: test, Path: path, Name: name, Words: words}
	for _, f := range fields {
		a.Fields = append(a.Fields, f...)
	}
	return a
}
