package daemon_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/internal/player"
	"parley/config"
)

// replay plays recordings and returns the output.
func replay(t *testing.T, r player.Recording) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	var out bytes.Buffer
	r.Out, r.Log = &out, slog.New(slog.NewJSONHandler(io.Discard, nil))
	if err := player.Replay(ctx, r); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

// example is a recording: Ash writes a message, and Olivia mentions the bot.
const example = `
{"directory":{"users":[{"id":"U06STGBF4Q0","display_name":"Olivia"},{"id":"U03AAAAAAAA","display_name":"Ash"}],"self":{"user_id":"U0BOT"}}}
{"platform":"slack","workspace":"acme","transport":"http","received_at":"2023-11-14T22:13:25Z","body":{"type":"event_callback","team_id":"T1","event_id":"Ev1","event":{"type":"message","channel":"C06RY3YBSLE","channel_type":"channel","user":"U03AAAAAAAA","text":"are we still on for tomorrow?","ts":"1700000000.000100"}}}
{"platform":"slack","workspace":"acme","transport":"http","received_at":"2023-11-14T22:13:25Z","body":{"type":"event_callback","team_id":"T1","event_id":"Ev2","event":{"type":"app_mention","channel":"C06RY3YBSLE","user":"U06STGBF4Q0","text":"<@U0BOT> testing from slack","ts":"1700000000.000200","thread_ts":"1700000000.000100"}}}
`

// TestReplayWithConfiguration asks the configured agent, obeys the policy, and calls no
// platform: no server has Slack's address.
func TestReplayWithConfiguration(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	p := plan{dir: t.TempDir(), helper: "notes: [time]", acme: "policy: {allow_users: [U06STGBF4Q0]}\ntime_zone: Asia/Tokyo"}
	p.write(t, strings.NewReplacer("AGENT", m.URL, "SLACK", "http://127.0.0.1:1/"))
	path := filepath.Join(p.dir, "example.jsonl")
	write(t, path, strings.TrimPrefix(example, "\n"))
	c, err := config.Load(filepath.Join(p.dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan *modelRequest, 1)
	go func() {
		a := <-m.asked
		a.reply <- replyWith("It works.")
		answered <- a
	}()
	lines := strings.Split(replay(t, player.Recording{Config: c, Files: []string{path}, JSON: true}), "\n")
	asked := (<-answered).messages
	same(t, asked[1:], []chatMessage{{"user", "[Olivia (<@U06STGBF4Q0>)]: <@U0BOT> testing from slack"}})
	if !strings.Contains(asked[0].Content, "(Asia/Tokyo)") {
		t.Errorf("the notes are %q", asked[0].Content)
	}
	if !strings.Contains(lines[0], `"reason":"user-refused"`) || !strings.Contains(lines[1], `"text":"It works."`) || !strings.Contains(lines[1], `"recipient_id":"bot:helper"`) {
		t.Errorf("%s\n%s", lines[0], lines[1])
	}
}
