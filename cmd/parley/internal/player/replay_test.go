package player_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/cmd/parley/internal/player"
	"parley/config"
	"parley/ingest/event"
)

var update = flag.Bool("update", false, "write the golden files")

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

// generatedID matches an id that each replay generates.
var generatedID = regexp.MustCompile(`"id":"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`)

// TestRecordings compares the result of every recorded payload with its golden file.
func TestRecordings(t *testing.T) {
	t.Parallel()
	recordings, err := filepath.Glob("../../../../testdata/*/*.jsonl")
	if err != nil || len(recordings) == 0 {
		t.Fatalf("%d recordings: %v", len(recordings), err)
	}
	for _, path := range recordings {
		name := filepath.Join(filepath.Base(filepath.Dir(path)), strings.TrimSuffix(filepath.Base(path), ".jsonl"))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := generatedID.ReplaceAllString(replay(t, player.Recording{Files: []string{path}, JSON: true}), `"id":"made-anew"`)
			golden := strings.TrimSuffix(path, ".jsonl") + ".golden"
			if *update {
				write(t, golden, got)
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			same(t, strings.Split(got, "\n"), strings.Split(string(want), "\n"))
		})
	}
}

// example is the documented recording: Ash writes a message, and Olivia mentions the bot.
const example = `
{"directory":{"users":[{"id":"U06STGBF4Q0","display_name":"Olivia"},{"id":"U03AAAAAAAA","display_name":"Ash"}],"self":{"user_id":"U0BOT"}}}
{"platform":"slack","workspace":"acme","transport":"http","received_at":"2023-11-14T22:13:25Z","body":{"type":"event_callback","team_id":"T1","event_id":"Ev1","event":{"type":"message","channel":"C06RY3YBSLE","channel_type":"channel","user":"U03AAAAAAAA","text":"are we still on for tomorrow?","ts":"1700000000.000100"}}}
{"platform":"slack","workspace":"acme","transport":"http","received_at":"2023-11-14T22:13:25Z","body":{"type":"event_callback","team_id":"T1","event_id":"Ev2","event":{"type":"app_mention","channel":"C06RY3YBSLE","user":"U06STGBF4Q0","text":"<@U0BOT> testing from slack","ts":"1700000000.000200","thread_ts":"1700000000.000100"}}}
`

// documented is the documented result of the second line.
const documented = `{"n":2,"disposition":"stored","kind":"message","trigger":"run","reason":"mention",
 "thread":"slack:acme:C06RY3YBSLE:1700000000.000100",
 "message":{"id":"C06RY3YBSLE/1700000000.000200","thread_seq":2,"role":"user","content":"<@U0BOT> testing from slack",
   "metadata":{"source":"slack","sender_id":"slack:U06STGBF4Q0","sender_display_name":"Olivia","sender_type":"human",
     "channel_external_id":"C06RY3YBSLE","mention_token":"<@U06STGBF4Q0>","passive":false,"include_in_memory":true,
     "trigger_rag":true,"recipient_id":"bot:echo"},"attachments":[]},
 "assembled":[{"role":"system","content":"[Thread context — prior messages in this thread, newest last]\n- Ash (<@U03AAAAAAAA>): are we still on for tomorrow?"},
              {"role":"user","content":"[Olivia (<@U06STGBF4Q0>)]: <@U0BOT> testing from slack"}],
 "replies":[{"op":"post","thread":"slack:acme:C06RY3YBSLE:1700000000.000100","text":"<@U0BOT> testing from slack"}]}`

func TestDocumentedReplay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "example.jsonl")
	write(t, path, strings.TrimPrefix(example, "\n"))
	lines := strings.Split(replay(t, player.Recording{Files: []string{path}, JSON: true}), "\n")
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(documented)); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	same(t, decode[any](t, lines[1]), decode[any](t, want.String()))
	if lines[1] != want.String() {
		t.Errorf("the order of the keys differs:\n%s\n%s", lines[1], want.String())
	}
	first := decode[map[string]any](t, lines[0])
	if first["trigger"] != "passive" || first["assembled"] != nil || first["replies"] != nil {
		t.Errorf("%s", lines[0])
	}
}

// bare returns a line of a recording with a bare Slack event.
func bare(event string) string { return `{"platform":"slack","body":` + event + "}\n" }

// TestRepeatOfWaitingLine replays an edit before its message, twice, and a delete whose
// message never comes, twice.
func TestRepeatOfWaitingLine(t *testing.T) {
	t.Parallel()
	edit := bare(`{"type":"message","subtype":"message_changed","channel":"C1","ts":"1750000000.000002","message":{"type":"message","user":"U1","text":"b","ts":"1750000000.000001","edited":{"user":"U1","ts":"1750000000.000002"}}}`)
	remove := bare(`{"type":"message","subtype":"message_deleted","channel":"C1","ts":"1750000000.000009","deleted_ts":"1750000000.000007"}`)
	path := filepath.Join(t.TempDir(), "waiting.jsonl")
	write(t, path, edit+edit+bare(`{"type":"message","channel":"C1","user":"U1","text":"a","ts":"1750000000.000001"}`)+remove+remove)
	type result struct {
		N                                          int
		Disposition, Kind, Trigger, Reason, Thread string
		Message                                    *struct{ Content string }
	}
	var got []result
	for line := range strings.Lines(replay(t, player.Recording{Files: []string{path}, JSON: true})) {
		got = append(got, decode[result](t, line))
	}
	message := func(content string) *struct{ Content string } { return &struct{ Content string }{content} }
	const place = "slack:replay:C1:1750000000.000001"
	same(t, got, []result{
		{1, "updated", "edit", "passive", "no-mention", place, message("b")},
		{2, "duplicate", "edit", "none", "", place, message("b")},
		{3, "stored", "message", "passive", "no-mention", place, message("a")},
		{4, "ignored", "delete", "none", "unknown-message", "", nil},
		{5, "duplicate", "delete", "none", "", "", nil},
	})
}

// TestReplayedFilesShareStore plays a raw payload and then a recording. The count goes on in
// the second file.
func TestReplayedFilesShareStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	raw, recording := filepath.Join(dir, "raw.json"), filepath.Join(dir, "more.jsonl")
	write(t, raw, `{"type":"message","channel":"D1","user":"U1","text":"one","ts":"1750000000.000001"}`)
	write(t, recording, bare(`{"type":"message","channel":"D1","user":"U1","text":"two","ts":"1750000000.000002"}`))
	out := replay(t, player.Recording{Files: []string{raw, recording}, Platform: event.Slack, JSON: true})
	lines := strings.Split(out, "\n")
	second := decode[struct {
		N         int
		Assembled []struct{ Role, Content string }
	}](t, lines[1])
	if second.N != 2 || len(second.Assembled) != 3 || second.Assembled[1].Content != "one" {
		t.Errorf("%s", out)
	}
}

// TestRefusedWordsReachNoAgent replays a shortcut, a forward and a reply with which an admitted
// person passes on the words of a refused one.
func TestRefusedWordsReachNoAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.yaml"), "listen: 127.0.0.1:0\n")
	const policy = "agent: echo\nturns: {coalesce: 0s}\npolicy: {allow_users: [U1, \"11\"], allow_channels: [C1, D1, \"31\"]}\n"
	write(t, filepath.Join(dir, "workspaces", "acme.yaml"), "id: acme\nplatform: slack\nslack: {app_token: xapp-1, bot_token: xoxb-1}\n"+policy)
	write(t, filepath.Join(dir, "workspaces", "guild.yaml"), "id: guild\nplatform: discord\ndiscord: {token: secret}\n"+policy)
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "words.jsonl")
	write(t, path, `{"directory":{"self":{"user_id":"U0BOT"}}}`+"\n"+
		bare(`{"type":"message_action","callback_id":"ask","trigger_id":"1.2.a","user":{"id":"U1"},"channel":{"id":"C1"},
			"message":{"type":"message","user":"U9","username":"Mallory","text":"hush","ts":"1750000000.000001"}}`)+
		bare(`{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"look","ts":"1750000000.000002","attachments":[
			{"is_share":true,"author_id":"U9","author_name":"Mallory","channel_id":"C1","ts":"1750000000.000001","text":"hush"},
			{"is_share":true,"author_id":"U1","author_name":"Olivia","channel_id":"C9","ts":"1750000000.000009","text":"hush"}]}`)+
		`{"platform":"discord","body":{"op":0,"t":"MESSAGE_CREATE","s":1,"d":{"id":"61","channel_id":"31","type":19,"content":"well?","timestamp":"2026-09-21T14:00:00+00:00",
			"author":{"id":"11","username":"olivia"},"message_reference":{"channel_id":"31","message_id":"60"},
			"referenced_message":{"id":"60","channel_id":"31","type":0,"content":"hush","timestamp":"2026-09-21T13:00:00+00:00","author":{"id":"99","username":"Mallory"}}}}}`)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.ReplaceAll(string(content), "\n\t\t\t", ""))
	out := replay(t, player.Recording{Config: c, Files: []string{path}, JSON: true})
	if n := strings.Count(out, "(a message that is not shown)"); n != 4 || strings.Contains(out, "hush") || strings.Contains(out, "Mallory") {
		t.Errorf("%d quotations are hidden:\n%s", n, out)
	}
}

// TestCopiesOfAProxyBotAreTheirAuthors replays messages that a proxy bot posts again for people, and an
// edit of one: each belongs to the author of the copied message alone.
func TestCopiesOfAProxyBotAreTheirAuthors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.yaml"), "listen: 127.0.0.1:0\n")
	write(t, filepath.Join(dir, "workspaces", "guild.yaml"), "id: guild\nplatform: discord\nagent: echo\ndiscord: {token: secret}\nturns: {coalesce: 0s}\n"+
		"policy: {proxies: [\"77\"], allow_users: [\"11\", \"12\"]}\n")
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := `{"directory":{"self":{"user_id":"99"}}}` + "\n"
	add := func(name, id, second, content, more string) {
		lines += `{"platform":"discord","workspace":"guild","received_at":"2026-09-21T14:00:59Z","body":{"op":0,"t":"` + name + `","s":1,"d":{"id":"` + id + `","channel_id":"31","guild_id":"7","content":"` +
			content + `","timestamp":"2026-09-21T14:00:` + second + `+00:00",` + more + `}}}` + "\n"
	}
	person := func(id string) string { return `"author":{"id":"` + id + `","username":"user` + id + `"},"type":0` }
	copied := func(by string) string {
		return `"author":{"id":"50","username":"Fern","bot":true},"webhook_id":"50","application_id":"` + by + `","type":0`
	}
	add("MESSAGE_CREATE", "101", "01", "f: <@99> is it dry?", person("11"))
	add("MESSAGE_CREATE", "102", "02", "<@99> is it dry?", copied("77"))
	lines += `{"platform":"discord","workspace":"guild","body":{"op":0,"t":"MESSAGE_DELETE","s":1,"d":{"id":"101","channel_id":"31","guild_id":"7"}}}` + "\n"
	add("MESSAGE_UPDATE", "102", "02", "<@99> is it very dry?", copied("77")+`,"edited_timestamp":"2026-09-21T14:00:05+00:00"`)
	add("MESSAGE_CREATE", "103", "06", "<@99> is it very dry?", copied("77")) // its original is not known; another copy is none
	add("MESSAGE_CREATE", "104", "07", "<@99> buy this", copied("78"))
	path := filepath.Join(dir, "proxies.jsonl")
	write(t, path, lines)
	var got []string
	for line := range strings.Lines(replay(t, player.Recording{Config: c, Files: []string{path}, JSON: true})) {
		var result struct {
			Disposition, Kind, Trigger, Reason string
			Message                            struct {
				Content  string
				Metadata struct {
					ID    string `json:"sender_id"`
					Name  string `json:"sender_display_name"`
					Type  string `json:"sender_type"`
					Token string `json:"mention_token"`
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &result); err != nil {
			t.Fatal(err)
		}
		m := result.Message.Metadata
		got = append(got, strings.Join([]string{result.Kind, result.Disposition, result.Trigger, result.Reason, m.ID, m.Name, m.Type, m.Token}, " "))
	}
	same(t, got, []string{
		"message stored run mention discord:11 user11 human <@11>",
		"message stored run mention discord:11 Fern human <@11>",
		"delete updated none  discord:11 user11 human <@11>",
		"edit updated none  discord:11 Fern human <@11>",
		"message ignored none user-refused    ",
		"message stored passive bot-message discord:50 Fern bot ",
	})
}

// TestPeopleFollowUp replays threads that we have answered, with policy.follow_threads.
func TestPeopleFollowUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.yaml"), "listen: 127.0.0.1:0\n")
	write(t, filepath.Join(dir, "workspaces", "acme.yaml"), `
id: acme
platform: slack
agent: echo
slack: {app_token: xapp-1, bot_token: xoxb-1}
turns: {coalesce: 0s}
policy: {follow_threads: true, bot_messages: run}
channels: [{id: C2, policy: {follow_threads: false}}]
`)
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var recording strings.Builder
	recording.WriteString(`{"directory":{"self":{"user_id":"U0BOT"}}}` + "\n")
	var want []string
	said := func(channel, by, root, text, trigger string) {
		n := len(want) + 1
		fmt.Fprintf(&recording, "%s", bare(fmt.Sprintf(`{"type":"message","channel":%q,"channel_type":"channel",%s,"text":%q,"ts":"1750000000.%06d"%s}`,
			channel, by, text, n, root)))
		want = append(want, trigger)
	}
	const person, bot, first, second = `"user":"U1"`, `"bot_id":"B1"`, `,"thread_ts":"1750000000.000001"`, `,"thread_ts":"1750000000.000007"`
	said("C1", person, "", "<@U0BOT> hello", "run mention")
	said("C1", person, first, "and then?", "run followed")
	said("C1", `"user":"U2"`, first, "indeed", "run followed")
	said("C1", person, first, "<@U2> shall we?", "passive no-mention")
	said("C1", bot, first, "beep", "passive no-mention")
	said("C1", person, "", "and in the channel?", "passive no-mention")
	said("C1", person, "", "nobody asked us here", "passive no-mention")
	said("C1", person, second, "nor here", "passive no-mention")
	said("C2", person, "", "<@U0BOT> hello", "run mention")
	said("C2", person, `,"thread_ts":"1750000000.000009"`, "and then?", "passive no-mention")
	path := filepath.Join(dir, "threads.jsonl")
	write(t, path, recording.String())
	var got []string
	for line := range strings.Lines(replay(t, player.Recording{Config: c, Files: []string{path}, JSON: true})) {
		r := decode[struct{ Trigger, Reason string }](t, line)
		got = append(got, r.Trigger+" "+r.Reason)
	}
	same(t, got, want)
}

func TestReplayAsText(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "example.jsonl")
	write(t, path, strings.TrimPrefix(example, "\n")+"no JSON\n")
	same(t, replay(t, player.Recording{Files: []string{path}}), `1  stored message, passive (no-mention)  in slack:acme:C06RY3YBSLE:1700000000.000100
     message C06RY3YBSLE/1700000000.000100, thread_seq 1
       | are we still on for tomorrow?
2  stored message, run (mention)  in slack:acme:C06RY3YBSLE:1700000000.000100
     message C06RY3YBSLE/1700000000.000200, thread_seq 2
       | <@U0BOT> testing from slack
     system
       | [Thread context — prior messages in this thread, newest last]
       | - Ash (<@U03AAAAAAAA>): are we still on for tomorrow?
     user
       | [Olivia (<@U06STGBF4Q0>)]: <@U0BOT> testing from slack
     reply to slack:acme:C06RY3YBSLE:1700000000.000100
       | <@U0BOT> testing from slack
3  dead other: line 4: the line is not a JSON object
`)
}

// TestWakeWordsInAReplay replays messages of groups with the wake words of a configuration.
func TestWakeWordsInAReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.yaml"), "listen: 127.0.0.1:0\n")
	write(t, filepath.Join(dir, "workspaces", "home.yaml"), `
id: home
platform: bluebubbles
agent: echo
bluebubbles: {url: "http://127.0.0.1:1", password: secret, webhook_secret: a-secret-of-24-characters, wake: [parley], channels: [{id: chat2, wake: [gardener]}]}
turns: {coalesce: 0s}
`)
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var recording strings.Builder
	var want []string
	for i, said := range []struct{ chat, text, trigger string }{
		{"chat1", "Parley, are you there?", "run mention"}, {"chat1", "parleying", "passive no-mention"},
		{"chat2", "parley?", "passive no-mention"}, {"chat2", "ask the gardener", "run mention"},
	} {
		fmt.Fprintf(&recording, `{"platform":"bluebubbles","body":{"type":"new-message","data":{"guid":"G-%d","text":%q,"handle":{"address":"+15555550142"},"chats":[{"guid":"iMessage;+;%s","style":43}]}}}`+"\n",
			i, said.text, said.chat)
		want = append(want, said.trigger)
	}
	path := filepath.Join(dir, "groups.jsonl")
	write(t, path, recording.String())
	var got []string
	for line := range strings.Lines(replay(t, player.Recording{Config: c, Files: []string{path}, JSON: true})) {
		r := decode[struct{ Trigger, Reason string }](t, line)
		got = append(got, r.Trigger+" "+r.Reason)
	}
	same(t, got, want)
}

// TestAThreadHasTheSettingsOfItsChannel replays messages and reactions of Discord's threads, whose
// frames name the channel of the thread.
func TestAThreadHasTheSettingsOfItsChannel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.yaml"), "listen: 127.0.0.1:0\n")
	write(t, filepath.Join(dir, "workspaces", "acme.yaml"), `
id: acme
platform: discord
agent: echo
discord: {token: token}
turns: {coalesce: 0s}
policy: {allow_channels: ["500", "501"]}
channels: [{id: "501", policy: {require_mention: false}}, {id: "602", policy: {require_mention: true}}]
`)
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var recording strings.Builder
	var want []string
	say := func(name, channel, parent, more, result string) {
		fmt.Fprintf(&recording, `{"op":0,"t":%q,"s":1,"session_id":"s","d":{"channel_id":%q,"guild_id":"400",%s}%s}`+"\n", name, channel, more, parent)
		want = append(want, result)
	}
	message := func(id string) string {
		return fmt.Sprintf(`"id":%q,"content":"hi","author":{"id":"900","username":"nora"},"member":{}`, id)
	}
	say("MESSAGE_CREATE", "500", "", message("1"), "stored no-mention")
	say("MESSAGE_CREATE", "600", `,"parent_id":"500"`, message("2"), "stored no-mention")
	say("MESSAGE_CREATE", "600", "", message("3"), "ignored channel-refused")
	say("MESSAGE_CREATE", "601", `,"parent_id":"501"`, message("4"), "stored open")
	say("MESSAGE_CREATE", "602", `,"parent_id":"501"`, message("5"), "stored no-mention")
	say("MESSAGE_CREATE", "603", `,"parent_id":"502"`, message("6"), "ignored channel-refused")
	say("MESSAGE_REACTION_ADD", "600", `,"parent_id":"500"`, `"message_id":"2","user_id":"900","emoji":{"name":"👍"}`, "updated ")
	path := filepath.Join(dir, "threads.jsonl")
	lines := strings.ReplaceAll(recording.String(), `{"op":0`, `{"platform":"discord","body":{"op":0`)
	write(t, path, `{"directory":{"self":{"user_id":"800"}}}`+"\n"+strings.ReplaceAll(lines, "\n", "}\n"))
	var got []string
	for line := range strings.Lines(replay(t, player.Recording{Config: c, Files: []string{path}, JSON: true})) {
		r := decode[struct{ Disposition, Reason string }](t, line)
		got = append(got, r.Disposition+" "+r.Reason)
	}
	same(t, got, want)
}

// TestReplayOfStrangers: a replay decides about strangers as the live daemon did, also by the recorded presses of approvers.
func TestReplayOfStrangers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.yaml"), "listen: 127.0.0.1:0\nagents: [{id: led, kind: openai, model: m, base_url: \"http://127.0.0.1:1/v1\", approvers: [UINES0001]}]\n")
	write(t, filepath.Join(dir, "workspaces", "acme.yaml"), "id: acme\nplatform: slack\nslack: {app_token: xapp-1, bot_token: xoxb-1}\nagent: led\nturns: {coalesce: 0s, max_attempts: 1}\npolicy: {allow_users: [UMARA0001], strangers: ask}\n")
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(replay(t, player.Recording{Config: c, Files: []string{"../../../../testdata/slack/strangers.jsonl"}, JSON: true})) {
		var r struct{ Disposition, Kind, Trigger, Reason string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, strings.Join([]string{r.Disposition, r.Kind, r.Trigger, r.Reason}, " "))
	}
	want := []string{
		"stored message run mention", "ignored message none stranger-asked", "ignored message none stranger-waits",
		"ignored action none action", "ignored action none action", "ignored action none action", "stored message run mention",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
