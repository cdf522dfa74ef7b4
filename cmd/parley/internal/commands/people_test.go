package commands

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestPeopleCommands exports and forgets the person who has written. No file of the data has the words after it, and the thread goes on.
func TestPeopleCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	p := start(t, dir, os.Args[0], "run")
	ours := conversation{t, p.address()}
	ours.call("POST", "messages", `{"thread_id":"`+threadID+`","content":"zebra words","client_message_id":"m-1","passive":true}`)
	ours.await("zebra words")
	p.signal(os.Interrupt)
	p.end()
	if inFiles(t, dir, "zebra") == "" {
		t.Fatal("the words are in no file")
	}
	p = start(t, dir, os.Args[0], "run")
	ours = conversation{t, p.address()}
	var person string
	for person == "" { // until the index of names has the person
		if found := regexp.MustCompile(`"sender_id":"([^"]+)"`).FindStringSubmatch(parley(t, dir, "people", "--json").stdout); found != nil {
			person = found[1]
		}
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string // of the output, a pattern
	}{
		{[]string{"people", "nobody-has-this-name", "--quiet"}, 0, `PERSON  NAME  WORKSPACES  LAST  ACCESS\n`},
		{[]string{"people", "forget", "nobody"}, 1, ``},
		{[]string{"people", "export", person, "--out", filepath.Join(dir, "person.zip")}, 0, ``},
		{[]string{"people", "forget", person, "--dry-run"}, 0, `[^\n]*: 1 message, 0 answers to them, 0 files and [^\n]*\n`},
		{[]string{"people", "forget", person}, 2, ``}, // nobody answers a question
		{[]string{"people", "forget", person, "--yes", "--note", "has left"}, 0, `[^\n]* is forgotten: 1 message, 0 answers and 0 files are empty; 0 messages of others changed\n`},
		{[]string{"people", "forget", person, "--yes", "--json"}, 0, `\{"sender_id":"[^"]*","messages":0,"answers":0,"files":0,"others":0\}\n`},
	} {
		got := parley(t, dir, c.args...)
		if got.status != c.status || !regexp.MustCompile(`^`+c.want+`$`).MatchString(got.stdout) {
			t.Errorf("%s: %d\n%s%s", c.args, got.status, got.stdout, got.stderr)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "person.zip")); err != nil || info.Size() == 0 {
		t.Errorf("the archive: %v", err)
	}
	ours.call("POST", "messages", `{"thread_id":"`+threadID+`","content":"go on","client_message_id":"m-2","passive":true}`)
	ours.await("", "go on")
	p.signal(os.Interrupt)
	p.end()
	// Without a daemon, a forget does at once what the daemon does within a minute.
	if got := parley(t, dir, "people", "forget", person, "--yes"); got.status != 0 {
		t.Errorf("without a daemon: %+v", got)
	}
	if at := inFiles(t, dir, "zebra"); at != "" {
		t.Errorf("the words are in %s", at)
	}
}

// inFiles returns a file of the data that has a word; empty for none.
func inFiles(t *testing.T, dir, word string) (found string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "data"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(word)) {
			found = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
