package commands

import (
	"testing"
	"time"

	"parley/adapters/web/threads"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest/journal/messages"
)

// TestProgramName: the tests are not run by go run, and their program has another name.
func TestProgramName(t *testing.T) {
	if got := commandLine("chat", "other.yaml"); got != "parley chat --config other.yaml" {
		t.Error(got)
	}
}

// TestWhyText prints the life of a message that was not answered. Strangers' text moves no cursor.
func TestWhyText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 9, 39, 16, 388e6, time.UTC)
	got := whyText(display{}, operator.Why{
		Found: true, Channel: "C06RY3YBSLE", ChannelName: "garden", Trigger: "passive", Reason: "no-mention", Words: "it mentions nobody", Change: "policy.require_mention: false",
		Message: &threads.Message{Content: "hello\n\x1b[2Jeverybody", SenderID: "slack:U1", Metadata: []byte(`{"sender_display_name":"Nora"}`), Trigger: messages.TriggerPassive, CreatedAt: at},
		Because: []config.Setting{{Key: "policy.require_mention", Value: "true"}, {Key: "agent", Value: "echo", File: "workspaces/acme.yaml", Line: 3}},
		Steps:   []operator.LifeStep{{At: at, What: "received", Detail: "envelope 6 over socket"}},
	}, at)
	const want = `"hello \u001b[2Jeverybody" by Nora (slack:U1) in #garden (C06RY3YBSLE), 09:39:16 +00:00
  09:39:16.388 +00:00  received  envelope 6 over socket
  NOT ANSWERED  no-mention: it mentions nobody
    policy.require_mention is true (default)
    agent is echo (workspaces/acme.yaml:3)
  To change it: policy.require_mention: false
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := whyText(display{}, operator.Why{Found: true, Trigger: "run", Reason: "direct", Words: "it is direct", Run: "failed", RunWords: "the agent echo: \x1b500", Repair: "parley runs retry r1"}, at); got !=
		"  NOT ANSWERED  failed: the agent echo: \\u001b500\n  To ask again: parley runs retry r1\n" {
		t.Errorf("of a failed run: %q", got)
	}
	if got := whyText(display{}, operator.Why{Found: true, Trigger: "run", Reason: "open", Words: "no mention is needed here", Change: "policy.require_mention: true", Quiet: true}, at); got != "  QUIET  open: no mention is needed here\n" {
		t.Errorf("of a quiet run: %q", got)
	}
	if got := whyText(display{}, operator.Why{Found: true, Trigger: "none", Words: "run r1 of agent echo wrote it", Answered: true}, at); got != "  A MESSAGE OF OURS  run r1 of agent echo wrote it\n" {
		t.Errorf("of an answer: %q", got)
	}
}
