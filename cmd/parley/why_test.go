package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"parley/adapters/web/threads"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest/journal/messages"
)

// TestWhyCommand asks for a message that nobody knows, with a daemon and without one.
func TestWhyCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	if got := parley(t, dir, "why"); got.status != 2 {
		t.Errorf("without a reference: %+v", got)
	}
	p := start(t, dir, os.Args[0], "run")
	p.await("parley is ready")
	const id = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	got := parley(t, dir, "why", "--json", id)
	var w struct {
		Ref      string
		Found    bool
		Possible []struct{ Reason string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &w); err != nil || got.status != 0 || w.Ref != id || w.Found || len(w.Possible) == 0 {
		t.Errorf("%v %+v", err, got)
	}
	p.signal(os.Interrupt)
	p.end()
	if got := parley(t, dir, "why", id); got.status != 0 || !strings.Contains(got.stdout, "The store does not have "+id) || !strings.Contains(got.stderr, "daemon stopped") {
		t.Errorf("%+v", got)
	}
}

// TestWhyText prints the life of a message that was not answered. Strangers' text moves no cursor.
func TestWhyText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 9, 39, 16, 388e6, time.UTC)
	got := whyText(operator.Why{
		Found: true, Channel: "C06RY3YBSLE", Trigger: "passive", Reason: "no-mention", Words: "it mentions nobody", Change: "policy.require_mention: false",
		Message: &threads.Message{Content: "hello\n\x1b[2Jeverybody", SenderID: "slack:U1", Trigger: messages.TriggerPassive, CreatedAt: at},
		Because: []config.Setting{{Key: "policy.require_mention", Value: "true"}, {Key: "agent", Value: "echo", File: "workspaces/acme.yaml", Line: 3}},
		Steps:   []operator.LifeStep{{At: at, What: "received", Detail: "envelope 6 over socket"}},
	})
	const want = `"hello \u001b[2Jeverybody" by slack:U1 in C06RY3YBSLE, 2026-11-27 09:39:16 UTC
  09:39:16.388  received  envelope 6 over socket
  NOT ANSWERED  no-mention: it mentions nobody
    policy.require_mention is true (default)
    agent is echo (workspaces/acme.yaml:3)
  To change it: policy.require_mention: false
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
