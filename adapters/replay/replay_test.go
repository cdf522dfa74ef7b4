package replay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/replay"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// file writes a temporary file and returns its path.
var known = []string{"slack", "discord", "bluebubbles", "web"}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lines(t *testing.T, path string, platform event.Platform) (out []replay.Line) {
	t.Helper()
	if err := replay.Read(path, platform, known, func(l replay.Line) error { out = append(out, l); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReadRecording checks that each line is one object, and checks the defaults of its
// fields.
func TestReadRecording(t *testing.T) {
	got := lines(t, file(t, "a.jsonl", `
{"platform":"slack","workspace":"acme","transport":"http","received_at":"2026-09-21T14:00:00Z","body":{"a": 1}}

  {"body": [1,2] }  `), event.Discord)
	want := []event.Envelope{
		{Platform: event.Slack, Transport: "http", ReceivedAt: time.Date(2026, 9, 21, 14, 0, 0, 0, time.UTC), Body: []byte(`{"a": 1}`)},
		{Platform: event.Discord, Transport: "replay", Body: []byte(`[1,2]`)},
	}
	if len(got) != 2 || got[0].Err != nil || got[1].Err != nil || got[0].Workspace != "acme" {
		t.Fatalf("lines %+v", got)
	}
	if diff := cmp.Diff(want, []event.Envelope{got[0].Envelope, got[1].Envelope}); diff != "" {
		t.Error(diff)
	}
}

// TestReadRawPayload checks that a raw payload is the whole file and gets its platform from
// the caller.
func TestReadRawPayload(t *testing.T) {
	path := file(t, "a.json", "{\n \"type\": \"message\"}\n")
	got := lines(t, path, event.Slack)
	if len(got) != 1 || string(got[0].Envelope.Body) != "{\n \"type\": \"message\"}\n" || got[0].Platform != event.Slack || !got[0].Envelope.ReceivedAt.IsZero() {
		t.Errorf("lines %+v", got)
	}
}

// TestLineFaults checks that the error of a faulty line names each of its fields, and that the
// line below it is read.
func TestLineFaults(t *testing.T) {
	for text, want := range map[string]string{
		`nonsense`:                            "not a JSON object",
		`[1]`:                                 "not a JSON object",
		`{"platform":"slack"`:                 "not a recorded envelope: unexpected end",
		`{"platform":"slack"}`:                "body: is missing",
		`{"Platform":"slack","body":{}}`:      "platform: is \"\", must be one of slack, discord, bluebubbles, web",
		`{"platform":"irc","body":{}}`:        "platform: is \"irc\"",
		`{"directory":{"users":"everybody"}}`: "directory.users: must be a list of objects",
		`{"platform":7,"workspace":[],"transport":{},"received_at":"noon"}`: "platform: must be a string; workspace: must be a string; transport: must be a string; " +
			"received_at: must be a time such as 2026-09-21T14:00:00Z; body: is missing",
		`{}`: "platform: is \"\", must be one of slack, discord, bluebubbles, web; body: is missing",
		`{"directory":{"users":[{"id":1,"is_bot":"no"}],"channels":[{"is_dm":1}],"self":[]}}`: "directory.users[0].id: must be a string; " +
			"directory.users[0].is_bot: must be true or false; directory.channels[0].is_dm: must be true or false; directory.self: must be an object",
		strings.Repeat("[", 16<<20): "longer than 16 MiB",
	} {
		got := lines(t, file(t, "a.jsonl", text+"\n"+`{"platform":"web","body":{}}`), "")
		if len(got) != 2 || got[0].Err == nil || !strings.Contains(got[0].Err.Error(), want) || got[1].Err != nil {
			t.Errorf("%.40s: %d lines, %v", text, len(got), got[0].Err)
		}
	}
	if got := lines(t, file(t, "a.jsonl", strings.Repeat(" ", 17<<20)), ""); len(got) != 1 || got[0].Err == nil {
		t.Errorf("a last line that is too long: %+v", got)
	}
}

// TestFileFaults checks that an unreadable file ends the reading with an error that names the
// file.
func TestFileFaults(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder.jsonl")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		folder:                                 "folder.jsonl: ",
		filepath.Join(t.TempDir(), "no.jsonl"): "no such file",
	} {
		err := replay.Read(path, event.Slack, known, func(replay.Line) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestDirectory checks the answers after a directory line, and that Learn adds only a missing
// user id.
func TestDirectory(t *testing.T) {
	d := replay.NewDirectory()
	for _, l := range lines(t, file(t, "a.jsonl", `{"directory":{"users":[{"id":"U1","display_name":"Olivia"},`+
		`{"id":"B1","display_name":"CI","is_bot":true},{"id":"B2","is_bot":true}],`+
		`"channels":[{"id":"C1","name":"garden","topic":"Beds"},{"id":"T1","name":"E4?"},{"id":"D1","is_dm":true}],"self":{"bot_id":"BBOT"}}}`), "") {
		d.Add(l.Directory)
	}
	if u, ok := d.User(t.Context(), "B1"); !ok || u.DisplayName != "CI" || !u.IsBot {
		t.Errorf("B1 is %+v, %v", u, ok)
	}
	if u, ok := d.User(t.Context(), "B2"); !ok || u.DisplayName != "B2" || !u.IsBot {
		t.Errorf("B2, a bot without a name, is %+v, %v", u, ok)
	}
	if u, ok := d.User(t.Context(), "U9"); ok {
		t.Errorf("U9 is %+v", u)
	}
	if at, in := d.Place("C1", ""), d.Place("T1", "C1"); at != (event.Place{Channel: "garden", Topic: "Beds"}) || in != (event.Place{Channel: "garden", Topic: "Beds", Thread: "E4?"}) {
		t.Errorf("the places are %+v and %+v", at, in)
	}
	d.Learn(event.Slack, event.Self{UserID: "UBOT", TeamID: "T1"})
	d.Learn(event.Slack, event.Self{UserID: "ULATER"})
	slack, discord := d.Facts(event.Slack), d.Facts(event.Discord)
	if got := slack.Self(); got != (event.Self{UserID: "UBOT", BotID: "BBOT"}) {
		t.Errorf("our identity on Slack is %+v", got)
	}
	if got := discord.Self(); got.UserID != "" {
		t.Errorf("our identity on Discord is %+v", got)
	}
	if slack.ChannelType("D1") != event.ChannelDirect || slack.ChannelType("C1") != event.ChannelUnknown {
		t.Error("D1 is not direct, or C1 has a type")
	}
}

// TestTextCannotBeForged checks that no text of a recording looks like a result or moves the
// terminal's cursor.
func TestTextCannotBeForged(t *testing.T) {
	evil := "a\n2  stored message, run (mention)\r\x1b[2J3  dead \u202eegassem\u2028x"
	result := replay.Result{
		N: 1, Disposition: event.Dead, Kind: event.KindMessage, Trigger: messages.TriggerNone, Error: evil, Thread: event.ThreadKey(evil),
		Message: &messages.View{ID: evil, ThreadSeq: 1, Content: evil}, Replies: []replay.Reply{{Thread: event.ThreadKey(evil), Text: evil}},
	}
	var b strings.Builder
	if err := result.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		if i > 0 && !strings.HasPrefix(line, "     ") {
			t.Errorf("line %d is not indented: %q", i+1, line)
		}
		if strings.ContainsAny(line, "\r\x1b\u202e\u2028") {
			t.Errorf("line %d moves the terminal: %q", i+1, line)
		}
	}
	if !strings.Contains(b.String(), `a\u000a2  stored`) || !strings.Contains(b.String(), `\u001b[2J`) {
		t.Errorf("the output does not show the escaped text:\n%s", b.String())
	}
}

// TestJSONIsOneLine checks that the result is one line with the promised keys.
func TestJSONIsOneLine(t *testing.T) {
	result := replay.Result{N: 2, Disposition: event.Ignored, Kind: event.KindReaction, Trigger: messages.TriggerNone, Reason: "a<b>\n&"}
	var b strings.Builder
	if err := result.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	const want = `{"n":2,"disposition":"ignored","kind":"reaction","trigger":"none","reason":"a<b>\n&"}` + "\n"
	if b.String() != want {
		t.Errorf("got %s", b.String())
	}
}
