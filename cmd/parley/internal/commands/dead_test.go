package commands

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// bury puts dead letters into the store of a stopped daemon: copies of its first payload, which says letter-0000.
// Of the odd ones, the thread was read before they failed.
func bury(t *testing.T, dir string, letters int) {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(dir, "data", "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = engine.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		for i := 1; i <= letters; i++ {
			if _, err := tx.Exec(`INSERT INTO envelopes (workspace, platform, transport, dedupe_key, kind, thread, message_id, received_at, accepted_at,
				state, disposition, error, message_uuid, body)
				SELECT workspace, platform, transport, replace(dedupe_key, '0000', $1), kind, CASE WHEN $2 = 1 THEN thread END, message_id, received_at, accepted_at,
				'dead', 'dead', 'content: must be a string', $3, CAST(replace(CAST(body AS TEXT), 'letter-0000', 'letter-' || $1) AS BLOB)
				FROM envelopes WHERE id = 1`, fmt.Sprintf("%04d", i), int64(i%2), uuid.Must(uuid.NewV7()).String()); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, engine.Close()); err != nil {
		t.Fatal(err)
	}
}

// recorded returns how often the store of a stopped daemon has each message.
func recorded(t *testing.T, dir string) map[string]int {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(dir, "data", "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	err = engine.ReadOne(t.Context(), func(tx storage.Tx) error {
		return tx.Rows(func(scan func(...any) error) error {
			var content string
			err := scan(&content)
			times[content]++
			return err
		}, `SELECT content FROM messages`)
	})
	if err = errors.Join(err, engine.Close()); err != nil {
		t.Fatal(err)
	}
	return times
}

// withLetters makes a store with dead letters, and starts a daemon on it.
func withLetters(t *testing.T, letters int) (dir string, p *process) {
	t.Helper()
	dir = t.TempDir()
	serveOperators(t, dir)
	p = start(t, dir, os.Args[0], "run")
	ours := conversation{t, p.address()}
	ours.call("POST", "messages", `{"thread_id":"`+threadID+`","content":"letter-0000","client_message_id":"letter-0000","passive":true}`)
	ours.await("letter-0000")
	p.signal(os.Interrupt)
	p.end()
	bury(t, dir, letters)
	p = start(t, dir, os.Args[0], "run")
	p.address()
	return dir, p
}

// TestDeadRetryAcrossAKill kills the daemon during the retry of all letters. The command fails, and after the next
// start it is repeated. Each letter is recorded once.
func TestDeadRetryAcrossAKill(t *testing.T) {
	t.Parallel()
	letters := 1000
	if testing.Short() {
		letters = 100
	}
	dir, p := withLetters(t, letters)
	retry := exec.CommandContext(t.Context(), os.Args[0], "dead", "retry", "--all", "--yes", "--error", "content*")
	retry.Dir, retry.Env = dir, append(os.Environ(), "PARLEY_COMMAND=1")
	stdout, err := retry.StdoutPipe()
	if err == nil {
		err = retry.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for range letters / 3 {
		if !lines.Scan() {
			t.Fatal("the command ended")
		}
	}
	p.signal(os.Kill)
	_ = p.cmd.Wait() // it ended by the signal
	for lines.Scan() {
		continue
	}
	if err := retry.Wait(); err == nil {
		t.Error("the command succeeded without its daemon")
	}
	p = start(t, dir, os.Args[0], "run")
	p.address()
	if got := parley(t, dir, "dead", "retry", "--all", "--yes"); got.status != 0 || !strings.Contains(got.stdout, " resubmitted: ") || got.stderr != "" {
		t.Errorf("repeated: %d %s", got.status, got.stderr)
	}
	p.signal(os.Interrupt)
	p.end()
	times := recorded(t, dir)
	for i := range letters + 1 {
		if n := times[fmt.Sprintf("letter-%04d", i)]; n != 1 {
			t.Errorf("letter %d was recorded %d times", i, n)
		}
	}
}

// TestDeadCommands checks the words and the objects of each command.
func TestDeadCommands(t *testing.T) {
	t.Parallel()
	dir, p := withLetters(t, 4)
	for _, c := range []struct {
		args   string
		status int
		want   string // of the output, a pattern
	}{
		{"dead", 0, `ID  WORKSPACE  RECEIVED         KIND     ERROR\n5   ours       \d\d:\d\d:\d\d [+-]\d\d:\d\d  message  content: must be a string\n4 [^\n]*\n3 [^\n]*\n2 [^\n]*\n`},
		{"dead --limit 1 --workspace ours --quiet", 0, `ID [^\n]*\n\d [^\n]*\n`},
		{"dead --workspace theirs", 2, ``},
		{"dead list --error *number", 0, `ID  WORKSPACE  RECEIVED  KIND  ERROR\n`},
		{"dead show 2", 0, `dead letter  2\nstate        dead\nworkspace    ours \(web, \w+\)\n(?s:.*)error        content: must be a string\n\n  \{\n    "content": "letter-0001",(?s:.*)`},
		{"dead show 2 --raw", 0, `\{"content":"letter-0001".*\}`},
		{"dead retry 2 --dry-run", 0, `2  stored, context \(passive\)\n`},
		{"dead retry 2", 0, `2  stored, context \(passive\)\n`},
		{"dead retry 2 --json", 0, `\{"id":2,"disposition":"stored","trigger":"passive","reason":"passive","error":""\}\n`},
		{"dead show 2 --json", 0, `\{"id":2,"workspace":"ours",.*"state":"settled","disposition":"stored","reason":"passive","error":""\}\n`},
		{"dead export", 0, `(\{"platform":"web","workspace":"ours","transport":"\w+","received_at":"[^"]+","body":\{"content":"letter-000[234]".*\n){3}`},
		{"dead discard 3", 2, ``},
		{"dead discard 3 --note twice", 0, `dead letter 3 is discarded\n`},
		{"dead retry --all", 2, ``}, // nobody answers a question
		{"dead retry --all --yes", 0, `4  stored, context \(passive\)\n5  stored, context \(passive\)\n2 resubmitted: 2 stored \(0 run, 2 context\)\n`},
		{"dead retry", 2, ``},
		{"dead retry 9", 1, ``},
		{"dead retry x", 2, ``},
		{"dead --json", 0, ``},
		{"deliveries", 0, `ID  CHANNEL  PART  STATE  TRIES  AGE  THREAD  POST  ERROR\n`},
		{"deliveries --state lost", 1, ``},
		{"deliveries drop 7", 1, ``},
		{"deliveries confirm 7", 2, ``},
	} {
		got := parley(t, dir, strings.Fields(c.args)...)
		if got.status != c.status || !regexp.MustCompile(`^`+c.want+`$`).MatchString(got.stdout) || (c.status == 0) != (got.stderr == "") {
			t.Errorf("%s: %d\n%s%s", c.args, got.status, got.stdout, got.stderr)
		}
	}
	p.signal(os.Interrupt)
	p.end()
	if got := parley(t, dir, "dead", "retry", "3"); got.status != 1 || !strings.Contains(got.stderr, "parley run") {
		t.Errorf("without a daemon: %+v", got)
	}
	if got := parley(t, dir, "dead", "show", "3", "--json"); got.status != 0 || got.stderr != "(daemon stopped)\n" || !json.Valid([]byte(got.stdout)) {
		t.Errorf("without a daemon: %+v", got)
	}
	if n := recorded(t, dir)["letter-0002"]; n != 0 {
		t.Errorf("a discarded letter was recorded %d times", n)
	}
}

// TestDeadExportIsARecording plays an export.
func TestDeadExportIsARecording(t *testing.T) {
	t.Parallel()
	dir, p := withLetters(t, 2)
	got := parley(t, dir, "dead", "export")
	p.signal(os.Interrupt)
	p.end()
	write(t, dir, "dead.jsonl", got.stdout)
	if got = parley(t, dir, "replay", "--format", "json", "dead.jsonl"); got.status != 0 || strings.Count(got.stdout, `"disposition":"stored"`) != 2 {
		t.Errorf("%+v", got)
	}
}
