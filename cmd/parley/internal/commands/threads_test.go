package commands

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/ingest/journal"
	"parley/ingest/journal/sqlite"
)

// TestThreadsAreExported in the form that import reads: an import into another store gives the same
// messages.
func TestThreadsAreExported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	key := "web:ours:6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	line := `{"id":"m-1","workspace":"ours","thread_id":"` + key + `","role":"user","content":"hello there","metadata":{"source":"web","sender_id":"web:a","sender_display_name":"c","sender_type":"human"},"created_at":"2024-05-01T09:30:00Z"}` + "\n" +
		`{"id":"m-2","workspace":"ours","thread_id":"` + key + `","role":"assistant","content":"Hello.","metadata":{},"created_at":"2024-05-01T09:30:01Z"}` + "\n"
	write(t, dir, "past.jsonl", line)
	if got := parley(t, dir, "import", "past.jsonl"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	list := parley(t, dir, "threads")
	if list.status != 0 || !strings.Contains(list.stdout, key) || !strings.Contains(list.stdout, "hello there") || list.stderr != "(daemon stopped)\n" {
		t.Errorf("%+v", list)
	}
	show := parley(t, dir, "threads", "show", key)
	if show.status != 0 || strings.Count(show.stdout, "hello there") != 1 || !strings.Contains(show.stdout, "Hello.") {
		t.Errorf("%+v", show)
	}
	input := parley(t, dir, "threads", "show", key, "--input")
	if input.status != 0 || !strings.Contains(input.stdout, "as it would be now") || !strings.Contains(input.stdout, "\nuser\n  hello there\n") {
		t.Errorf("%+v", input)
	}
	if got := parley(t, dir, "threads", "show", key, "--run", "1"); got.status != 2 {
		t.Errorf("%+v", got)
	}
	fillSearch(t, dir)
	for line, want := range map[string]string{
		"search hello": "hello there", "search hello --workspace ours --person C --since 2024-01-01 --json": `"sender":"c"`,
	} {
		if got := parley(t, dir, strings.Fields(line)...); got.status != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	for _, line := range []string{"search hello --person Nora", "search hello --since 2024-06-01", "search goodbye"} {
		if got := parley(t, dir, strings.Fields(line)...); got.status != 0 || strings.Count(got.stdout, "\n") != 1 {
			t.Errorf("%s: %+v", line, got)
		}
	}
	exported := parley(t, dir, "threads", "export", key)
	if exported.status != 0 || strings.Count(exported.stdout, "\n") != 2 {
		t.Fatalf("%+v", exported)
	}
	other := t.TempDir()
	serveOperators(t, other)
	write(t, other, "past.jsonl", exported.stdout)
	if got := parley(t, other, "import", "past.jsonl"); got.status != 0 || !strings.HasPrefix(got.stdout, "2 messages") {
		t.Errorf("%+v", got)
	}
	again := parley(t, other, "threads", "show", key)
	if again.stdout != show.stdout {
		t.Errorf("%s\nand then\n%s", show.stdout, again.stdout)
	}
	if got := parley(t, dir, "threads", "show", "web:ours:none"); got.status != 1 || !strings.Contains(got.stderr, "there is no thread web:ours:none: see parley threads") {
		t.Errorf("%+v", got)
	}
}

// TestReload prints the faults of files, and exits with the status 1 while the daemon goes on.
func TestReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	if got := parley(t, dir, "reload"); got.status != 4 || !strings.Contains(got.stderr, "parley run") {
		t.Errorf("%+v", got)
	}
	p := start(t, dir, os.Args[0], "run")
	p.await("parley is ready")
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nlog: {level: loud}\n")
	if got := parley(t, dir, "reload"); got.status != 1 || !strings.HasPrefix(got.stdout, "parley.yaml:2: log.level: ") {
		t.Errorf("%+v", got)
	}
	write(t, dir, "parley.yaml", "{\n")
	if got := parley(t, dir, "reload", "--json"); got.status != 1 || !strings.Contains(got.stdout, `"applied":false`) {
		t.Errorf("%+v", got)
	}
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nlog: {level: warn}\nattachments: {ttl: 2h}\n")
	if got := parley(t, dir, "reload"); got.status != 0 || got.stdout != "changed: log.level, attachments.ttl\n" || got.stderr != "at the next start only: attachments.ttl\n" {
		t.Errorf("%+v", got)
	}
	if got := parley(t, dir, "tail", "--once", "--json"); got.status != 0 || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	p.signal(os.Interrupt)
	p.end()
}

// fillSearch puts the messages of the store of a stopped daemon into its index, as a daemon does.
func fillSearch(t *testing.T, dir string) {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(dir, "data", "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := journal.New(engine, journal.Options{Node: "test"})
	err = j.Search.FillSearch(t.Context())
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
}
