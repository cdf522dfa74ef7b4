package player_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/internal/operator"
	"parley/cmd/parley/internal/player"
	"parley/config"
)

// asked is one message of TestWhy: the line of a recording that brings it, and what Why must say about it.
type asked struct {
	name, workspace, body string // name is the reason
	received              string // empty: its age is not judged
	ref                   string // empty: the id that replay prints
	trigger, cause        string // cause is the first setting, with its place
	quiet                 bool   // the agent chooses to say nothing
}

// slackBody returns an event of Slack in a room, sent by a person.
func slackBody(ts, text, more string) string {
	return fmt.Sprintf(`{"type":"message","channel":"C06RY3YBSLE","user":"U06STGBF4Q0","text":%q,"ts":"1700000000.%s"%s}`, text, ts, more)
}

// discordBody returns a message on Discord.
func discordBody(id, text, more string) string {
	return fmt.Sprintf(`{"op":0,"t":"MESSAGE_CREATE","s":1,"d":{"id":%q,"channel_id":"310000000000000000","guild_id":"70000000000000000","type":0,"content":%q,
		"timestamp":"2026-09-21T14:00:00+00:00","author":{"id":"110000000000000000","username":"olivia"}%s}}`, id, text, more)
}

// phoneBody returns a message of iMessage.
func phoneBody(guid, service, more string) string {
	return fmt.Sprintf(`{"type":"new-message","data":{"guid":%q,"text":"hi","handle":{"address":"+15555550142","service":%q},"isFromMe":false,"dateCreated":1790000060000,
		"itemType":0,"groupActionType":0,"attachments":[],"chats":[{"guid":"%s;-;+15555550142","style":45,"chatIdentifier":"+15555550142"}]%s}}`, guid, service, service, more)
}

// webBody returns a message of our own API.
func webBody(more string) string {
	return `{"content":"hi","thread_id":"00000000-0000-4000-8000-000000000001","metadata":{"source":"slack","sender_id":"slack:U1","sender_display_name":"Ash","sender_type":"human","mention_token":"<@U1>"` + more + `}`
}

// permalink returns the link of a message of slackBody.
func permalink(ts string) string {
	return "https://acme.slack.com/archives/C06RY3YBSLE/p1700000000" + ts
}

const slackFile = "platform: slack\nagent: echo\nslack: {app_token: xapp-NAME, bot_token: xoxb-1-NAME}\nturns: {coalesce: 0s}\n"

// whyFiles are the workspaces of TestWhy. Line 6 is the first one of the policy of a workspace on Slack.
var whyFiles = map[string]string{
	"acme":    slackFile,
	"closed":  slackFile + "policy:\n  require_mention: true\n  passive_memory: false\n  allow_users: [U06STGBF4Q0]\n",
	"rooms":   slackFile + "policy:\n  allow_channels: [C0OTHER]\n",
	"open":    slackFile + "policy: {require_mention: true}\nchannels:\n  - id: C06RY3YBSLE\n    policy: {require_mention: false}\n",
	"follow":  slackFile + "policy:\n  follow_threads: true\n",
	"nobots":  slackFile + "policy:\n  bot_messages: ignore\n",
	"bots":    slackFile + "policy:\n  bot_messages: run\n  loop_guard: {runs: 1, per: 5m}\n",
	"few":     slackFile + "limits: {runs_per_user: 1/h}\n",
	"guild":   "id: guild\nplatform: discord\nagent: echo\ndiscord: {token: secret-1}\nturns: {coalesce: 0s}\n",
	"servers": "platform: discord\nagent: echo\ndiscord: {token: secret-2}\npolicy: {allow_servers: [\"80000000000000000\"]}\n",
	"phone":   "platform: bluebubbles\nagent: echo\nbluebubbles: {url: 'http://127.0.0.1:1', password: a-long-password, webhook_secret: hook-7f3a9c51d2e84b60a1c35e97, sms: context}\n",
	"ours":    "platform: web\nagent: echo\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n",
}

// whyAsked has a message for each reason that a message can have.
var whyAsked = []asked{
	{name: "mention", workspace: "acme", body: slackBody("000101", "<@U0BOT> hi", ""), ref: permalink("000101"), trigger: "run", cause: "policy.require_mention: true (default)"},
	{name: "direct", workspace: "acme", body: strings.Replace(slackBody("000102", "hi", `,"channel_type":"im"`), "C06RY3YBSLE", "D06RY3YBSLE", 1), ref: "D06RY3YBSLE/1700000000.000102", trigger: "run", cause: "policy.require_mention: true (default)"},
	{name: "no-mention", workspace: "acme", body: slackBody("000103", "hi all", ""), ref: permalink("000103"), trigger: "passive", cause: "policy.require_mention: true (default)"},
	{name: "open", workspace: "open", body: slackBody("000104", "hi all", ""), ref: permalink("000104"), trigger: "run", cause: "channels[0].policy.require_mention: false (workspaces/open.yaml:9)"},
	{name: "open", workspace: "open", body: slackBody("000120", "NO_REPLY", ""), ref: permalink("000120"), trigger: "run", cause: "channels[0].policy.require_mention: false (workspaces/open.yaml:9)", quiet: true},
	{name: "mention", workspace: "follow", body: slackBody("000105", "<@U0BOT> hi", ""), ref: permalink("000105"), trigger: "run", cause: "policy.require_mention: true (default)"},
	{name: "followed", workspace: "follow", body: slackBody("000106", "and now?", `,"thread_ts":"1700000000.000105"`), ref: permalink("000106"), trigger: "run", cause: "policy.follow_threads: true (workspaces/follow.yaml:7)"},
	{name: "command", workspace: "acme", body: `{"type":"message_action","callback_id":"ask","trigger_id":"1.2.a","user":{"id":"U06STGBF4Q0"},"channel":{"id":"C06RY3YBSLE"},"message":{"type":"message","user":"U9","text":"look","ts":"1700000000.000107"}}`,
		trigger: "run"},
	{name: "too-old", workspace: "acme", body: slackBody("000108", "<@U0BOT> hi", ""), received: "2023-11-15T22:13:20Z", ref: permalink("000108"), trigger: "passive", cause: "policy.max_age: 1h (default)"},
	{name: "bot-message", workspace: "acme", body: slackBody("000109", "beep", `,"bot_id":"B1","subtype":"bot_message"`), ref: permalink("000109"), trigger: "passive", cause: "policy.bot_messages: context (default)"},
	{name: "bot-message", workspace: "nobots", body: slackBody("000110", "beep", `,"bot_id":"B1","subtype":"bot_message"`), ref: permalink("000110"), trigger: "none", cause: "policy.bot_messages: ignore (workspaces/nobots.yaml:7)"},
	{name: "mention", workspace: "bots", body: slackBody("000111", "<@U0BOT> beep", `,"bot_id":"B1","subtype":"bot_message"`), ref: permalink("000111"), trigger: "run", cause: "policy.require_mention: true (default)"},
	{name: "loop-guard", workspace: "bots", body: slackBody("000112", "<@U0BOT> beep", `,"bot_id":"B1","subtype":"bot_message"`), ref: permalink("000112"), trigger: "passive", cause: "policy.loop_guard.runs: 1 (workspaces/bots.yaml:8)"},
	{name: "mention", workspace: "few", body: slackBody("000113", "<@U0BOT> one", ""), ref: permalink("000113"), trigger: "run", cause: "policy.require_mention: true (default)"},
	{name: "limit", workspace: "few", body: slackBody("000114", "<@U0BOT> two", ""), ref: permalink("000114"), trigger: "passive", cause: "limits.runs_per_user: 1/1h (workspaces/few.yaml:6)"},
	{name: "own-message", workspace: "acme", body: strings.Replace(slackBody("000115", "me", ""), "U06STGBF4Q0", "U0BOT", 1), ref: permalink("000115"), trigger: "none"},
	{name: "not-addressed", workspace: "closed", body: slackBody("000116", "hi all", ""), ref: permalink("000116"), trigger: "none", cause: "policy.passive_memory: false (workspaces/closed.yaml:8)"},
	{name: "user-refused", workspace: "closed", body: strings.Replace(slackBody("000117", "<@U0BOT> hi", ""), "U06STGBF4Q0", "U9", 1), ref: permalink("000117"), trigger: "none", cause: "policy.allow_users: [U06STGBF4Q0] (workspaces/closed.yaml:9)"},
	{name: "channel-refused", workspace: "rooms", body: slackBody("000118", "<@U0BOT> hi", ""), ref: permalink("000118"), trigger: "none", cause: "policy.allow_channels: [C0OTHER] (workspaces/rooms.yaml:7)"},
	{name: "system-message", workspace: "guild", body: strings.Replace(discordBody("1267190211223752701", "joined", ""), `"type":0`, `"type":7`, 1), ref: "https://discord.com/channels/70000000000000000/310000000000000000/1267190211223752701", trigger: "none"},
	{name: "reply", workspace: "guild", ref: "1267190211223752702", trigger: "run", cause: "policy.require_mention: true (default)",
		body: strings.Replace(discordBody("1267190211223752702", "and?", `,"message_reference":{"channel_id":"310000000000000000","message_id":"1267190211223752700"},
		"referenced_message":{"id":"1267190211223752700","channel_id":"310000000000000000","type":0,"content":"hm","timestamp":"2026-09-21T13:00:00+00:00","author":{"id":"990000000000000000","username":"bot","bot":true}}`), `"type":0`, `"type":19`, 1)},
	{name: "server-refused", workspace: "servers", body: discordBody("1267190211223752703", "<@990000000000000000> hi", ""), ref: "1267190211223752703", trigger: "none", cause: "policy.allow_servers: [80000000000000000] (workspaces/servers.yaml:5)"},
	{name: "from-me", workspace: "phone", body: strings.Replace(phoneBody("5D1E-1", "iMessage", ""), `"isFromMe":false`, `"isFromMe":true`, 1), ref: "5D1E-1", trigger: "passive", cause: "bluebubbles.from_me: passive (default)"},
	{name: "sms", workspace: "phone", body: phoneBody("5D1E-2", "SMS", ""), ref: "5D1E-2", trigger: "passive", cause: "bluebubbles.sms: context (workspaces/phone.yaml:4)"},
	{name: "passive", workspace: "ours", body: webBody("}," + `"passive":true`), trigger: "passive"},
	{name: "not-for-us", workspace: "ours", body: webBody(`,"recipient_id":"bot:other"}`), trigger: "passive", cause: "agent: echo (workspaces/ours.yaml:3)"},
	{name: "unknown-message", workspace: "acme", ref: permalink("000199"), trigger: "none", cause: "catch_up.max_age: 24h (default)",
		body: `{"type":"message","subtype":"message_changed","channel":"C06RY3YBSLE","ts":"1700000001.000001","message":{"type":"message","user":"U06STGBF4Q0","text":"new","ts":"1700000000.000199","edited":{"user":"U06STGBF4Q0","ts":"1700000001.000000"}},"previous_message":{"type":"message","user":"U06STGBF4Q0","text":"old","ts":"1700000000.000199"}}`},
}

// TestWhy asks for the reason of messages that the pipeline has decided about, and for the setting behind it.
func TestWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.yaml"), "listen: 127.0.0.1:0\n")
	for name, content := range whyFiles {
		write(t, filepath.Join(dir, "workspaces", name+".yaml"), "id: "+name+"\n"+strings.TrimPrefix(strings.ReplaceAll(content, "NAME", name), "id: "+name+"\n"))
	}
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := `{"directory":{"self":{"user_id":"U0BOT"}}}` + "\n"
	for _, a := range whyAsked {
		w := c.Workspace(a.workspace)
		if w.Platform == "discord" {
			lines += `{"directory":{"self":{"user_id":"990000000000000000"}}}` + "\n"
		}
		var body bytes.Buffer
		if err := json.Compact(&body, []byte(a.body)); err != nil {
			t.Fatalf("%s: %v", a.body, err)
		}
		line, _ := json.Marshal(map[string]any{"platform": w.Platform, "workspace": a.workspace, "body": json.RawMessage(body.Bytes())})
		if a.received != "" {
			line = append(line[:len(line)-1], []byte(`,"received_at":"`+a.received+`"}`)...)
		}
		lines += string(line) + "\n"
	}
	path := filepath.Join(dir, "asked.jsonl")
	write(t, path, lines)
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	r := player.Recording{Config: c, Files: []string{path}, JSON: true, Out: &out, Log: slog.New(slog.NewJSONHandler(io.Discard, nil))}
	err = player.ReplayFor(ctx, r, t.TempDir(), func(s *operator.Service) {
		results := strings.SplitAfter(strings.TrimSpace(out.String()), "\n")
		if len(results) != len(whyAsked) {
			t.Fatalf("%d results of %d lines", len(results), len(whyAsked))
		}
		for i, result := range results {
			whyAsked[i].check(ctx, t, s, dir, decode[replayed](t, result))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// replayed is a result of replay.
type replayed struct {
	Trigger, Reason string
	Message         struct{ ID string }
}

// check asks for one message.
func (a asked) check(ctx context.Context, t *testing.T, s *operator.Service, dir string, result replayed) {
	t.Helper()
	if result.Reason != a.name || result.Trigger != a.trigger {
		t.Errorf("%s: the pipeline decided %+v", a.name, result)
		return
	}
	ref := a.ref
	if ref == "" {
		ref = result.Message.ID
	}
	w, err := s.Why(ctx, operator.OnSocket(""), ref)
	if err != nil || !w.Found || w.Workspace != a.workspace || w.Trigger != a.trigger || w.Reason != a.name || w.Words == "" {
		t.Errorf("%s: %v, %+v", a.name, err, w)
		return
	}
	cause := ""
	if len(w.Because) > 0 {
		cause = strings.ReplaceAll(w.Because[0].String(), dir+string(filepath.Separator), "")
	}
	if cause != a.cause {
		t.Errorf("%s: because of %q, want %q", a.name, cause, a.cause)
	}
	if runs := a.trigger == "run"; w.Answered != (runs && !a.quiet) || w.Quiet != a.quiet || has(w, "quiet") != a.quiet || !has(w, "received") || !has(w, "durable") || !has(w, "decided") || has(w, "attempt") != runs {
		t.Errorf("%s: answered %t, steps %+v", a.name, w.Answered, w.Steps)
	}
}

// TestWhyHasManyNames asks for one direct message by each of its ids, as a reader and as a viewer.
func TestWhyHasManyNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.yaml"), "listen: 127.0.0.1:0\n")
	write(t, filepath.Join(dir, "workspaces", "acme.yaml"), "id: acme\n"+slackFile)
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "direct.jsonl")
	write(t, path, `{"directory":{"self":{"user_id":"U0BOT"}}}`+"\n"+
		`{"platform":"slack","workspace":"acme","body":`+strings.Replace(slackBody("000102", "a secret plan", `,"channel_type":"im"`), "C06RY3YBSLE", "D06RY3YBSLE", 1)+"}\n")
	r := player.Recording{Config: c, Files: []string{path}, JSON: true, Out: io.Discard, Log: slog.New(slog.NewJSONHandler(io.Discard, nil))}
	err = player.ReplayFor(t.Context(), r, t.TempDir(), func(s *operator.Service) {
		first, err := s.Why(t.Context(), operator.OnSocket(""), "D06RY3YBSLE/1700000000.000102")
		if err != nil || first.Message == nil || first.Message.Content != "a secret plan" || first.Message.Run == nil {
			t.Fatalf("%v %+v", err, first)
		}
		for _, ref := range []string{first.Message.ID, strings.ToUpper(first.Message.ID), *first.Message.Run.ID, "https://acme.slack.com/archives/D06RY3YBSLE/p1700000000000102"} {
			w, err := s.Why(t.Context(), operator.Caller{}, ref)
			if err != nil || w.Message == nil || w.Message.ID != first.Message.ID || len(w.Steps) != len(first.Steps) {
				t.Errorf("%s: %v %+v", ref, err, w)
				continue
			}
			if raw, _ := json.Marshal(w); strings.Contains(string(raw), "secret plan") {
				t.Errorf("a viewer sees the words of a direct message: %s", raw)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// has reports whether a life has a step.
func has(w operator.Why, what string) bool {
	for _, s := range w.Steps {
		if s.What == what {
			return true
		}
	}
	return false
}
