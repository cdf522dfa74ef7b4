package commands

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/web/access"
	"parley/ingest/journal"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

const (
	pastWeb   = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	pastSlack = "7ba7b810-9dad-41d1-80b4-00c04fd430c8"
	pastKey   = "slack:acme:C1:1700000000.000100"
)

// pastLine returns a line of an import.
func pastLine(id, workspace, thread, role, content string, second int) string {
	return fmt.Sprintf(`{"id":%q,"workspace":%q,"thread_id":%q,"role":%q,"content":%q,
		"metadata":{"source":"slack","sender_id":"slack:U1","k":1e2},"created_at":"2024-05-01T09:30:%02dZ"}`, id, workspace, thread, role, content, second)
}

func joinLines(lines ...string) string {
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "\n", " ")
	}
	return strings.Join(lines, "\n\n") + "\n"
}

// importDir returns a folder with a configuration of a web workspace and a Slack workspace.
func importDir(t *testing.T) string {
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: canary-import-93d2ae60-5c1f, name: A}]}\n")
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: echo\nslack: {app_token: xapp-1, bot_token: xoxb-1}\n")
	return dir
}

// TestImport reads a file into threads, and a second time without effect.
func TestImport(t *testing.T) {
	t.Parallel()
	dir := importDir(t)
	write(t, dir, "old.jsonl", joinLines(
		pastLine("m-1", "ours", pastWeb, "user", "[Slack channel:C1 user:Olivia] hi", 1),
		pastLine("m-2", "ours", pastWeb, "assistant", "Hello.", 2),
		pastLine("m-1", "acme", pastSlack, "user", "hi", 3), // the same id in another workspace
		pastLine("m-4", "acme", pastKey, "user", "ho", 4),
		pastLine("m-5", "ours", "{"+strings.ToUpper(pastWeb)+"}", "user", "more", 5),
		pastLine("m-7", "ours", pastWeb, "user", "odd", 7),
		pastLine("m-6", "acme", strings.ReplaceAll(pastSlack, "-", ""), "user", "he", 6),
	))
	expect(t, parley(t, dir, "import", "old.jsonl"), 0, "7 messages are imported; 0 were known\n", "")
	expect(t, parley(t, dir, "import", "--config", "parley.yaml", "old.jsonl"), 0, "0 messages are imported; 7 were known\n", "")
	engine := open(t, dir+"/data/parley.db")
	defer done(t, engine)
	j := journal.New(engine, journal.Options{})
	read := func(workspace, id string) (out []string) {
		list, err := j.Messages.ThreadMessages(t.Context(), workspace, id, messages.Page{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			if !utf8.Valid(m.Metadata) {
				t.Errorf("the metadata is no JSON: %q", m.Metadata)
			}
			out = append(out, fmt.Sprintf("%d %s %s %s v%d %s", m.Seq, m.Author, m.SenderID, m.Content, m.Version, m.CreatedAt.Format("05")))
		}
		return out
	}
	want := [][]string{
		{"1 human slack:U1 [Slack channel:C1 user:Olivia] hi v0 01", "2 agent agent:echo Hello. v0 02", "3 human slack:U1 more v0 05", "4 human slack:U1 odd v0 07"},
		{"1 human slack:U1 hi v0 03", "2 human slack:U1 he v0 06"}, {"1 human slack:U1 ho v0 04"},
	}
	keyed, err := j.Threads.ThreadID(t.Context(), pastKey)
	if err != nil {
		t.Fatal(err)
	}
	got := [][]string{read("ours", pastWeb), read("acme", pastSlack), read("acme", keyed)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestImportedConversation: who has written in an imported thread of our own API takes part in it.
func TestImportedConversation(t *testing.T) {
	t.Parallel()
	dir := importDir(t)
	write(t, dir, "old.jsonl", joinLines(strings.Replace(pastLine("m-1", "ours", pastWeb, "user", "hi", 1), "slack:U1", "web:a", 1), pastLine("m-2", "ours", pastWeb, "assistant", "Hello.", 2)))
	expect(t, parley(t, dir, "import", "old.jsonl"), 0, "2 messages are imported; 0 were known\n", "")
	engine := open(t, dir+"/data/parley.db")
	defer done(t, engine)
	j := journal.New(engine, journal.Options{})
	thread, err := j.Threads.Thread(t.Context(), "ours", pastWeb)
	if err != nil {
		t.Fatal(err)
	}
	token := access.Token{ID: "a"}
	got, err := j.Threads.Participants(t.Context(), &thread)
	if diff := cmp.Diff([]string{string(token.ActorIn("ours"))}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// TestImportFaults: a fault in any line is reported, and nothing is imported.
func TestImportFaults(t *testing.T) {
	t.Parallel()
	dir := importDir(t)
	good := pastLine("m-1", "ours", pastWeb, "user", "hi", 1)
	write(t, dir, "old.jsonl", joinLines(good, `[]`, `{"ID":"m-9","id":7,"thread_id":"x","created_at":"noon","metadata":[]}`, strings.Replace(good, `"user"`, `"tool"`, 1),
		pastLine("m-2", "acme", "slack:other:C1:1", "user", "hi", 1), strings.Replace(good, `"slack:U1"`, `7`, 1), strings.Replace(good, "hi", "caf\xe9", 1),
		strings.Replace(good, "1e2", strings.Repeat("[", 101)+strings.Repeat("]", 101), 1)))
	got := parley(t, dir, "import", "old.jsonl")
	for _, words := range []string{"old.jsonl:3: the line is no message: must be a JSON object",
		"old.jsonl:5: id: must be a string; created_at: must be a time such as 2024-05-01T09:30:00Z; workspace: must be a configured workspace; role: must be user or assistant; content: is required; metadata: ",
		"old.jsonl:7: role:", "old.jsonl:9: thread_id:", "old.jsonl:11: metadata.sender_id: must be a string", "old.jsonl:13: the line is not UTF-8: byte 111 is E9",
		"old.jsonl:15: metadata.k: must not be nested more than 100 deep"} {
		expect(t, got, 1, "", words)
	}
	expect(t, parley(t, dir, "import", "missing.jsonl"), 1, "", "missing.jsonl")
	expect(t, parley(t, dir, "import", "/dev/null"), 1, "", "must be a regular file")
	write(t, dir, "long.jsonl", strings.Repeat("x", 17<<20)+"\n[]\n")
	for _, words := range []string{"long.jsonl:1: the line is longer than 16 MiB", "long.jsonl:2: the line is no message"} {
		expect(t, parley(t, dir, "import", "long.jsonl"), 1, "", words)
	}
	expect(t, parley(t, dir, "import"), 2, "", "arg")
	write(t, dir, "old.jsonl", "\ufeff"+joinLines(good))
	expect(t, parley(t, dir, "import", "old.jsonl"), 1, "", "old.jsonl:1: the line begins with a byte order mark")
	write(t, dir, "old.jsonl", joinLines(good))
	expect(t, parley(t, dir, "import", "old.jsonl"), 0, "1 message is imported; 0 were known\n", "")
}

// TestImportBesideDaemon: an embedded store that another process uses is refused.
func TestImportBesideDaemon(t *testing.T) {
	t.Parallel()
	dir := importDir(t)
	write(t, dir, "old.jsonl", joinLines(pastLine("m-1", "ours", pastWeb, "user", "hi", 1)))
	write(t, dir, "data/.keep", "")
	engine := open(t, dir+"/data/parley.db")
	defer done(t, engine)
	expect(t, parley(t, dir, "import", "old.jsonl"), 1, "", storage.ErrLocked.Error())
}
