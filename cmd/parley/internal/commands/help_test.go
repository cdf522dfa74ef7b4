package commands

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHelpOfEachCommand has an example and tells where the documentation is.
func TestHelpOfEachCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	got := parley(t, dir, "--help")
	for _, group := range []string{"Begin:\n  init ", "Look:\n  status ", "Act and repair:\n  runs ", "Store:\n  backup ", "Additional Commands:\n"} {
		if !strings.Contains(got.stdout, group) {
			t.Errorf("%q is not in\n%s", group, got.stdout)
		}
	}
	if alone := parley(t, dir); alone != got {
		t.Errorf("without a command: %+v", alone)
	}
	for _, own := range listed(t, got.stdout) {
		help := parley(t, dir, own, "--help").stdout
		for _, part := range []string{"Examples:", "Documentation:"} {
			if !strings.Contains(help, part) {
				t.Errorf("parley %s --help has no %s\n%s", own, part, help)
			}
		}
	}
}

// TestEnvironment: a variable names the configuration, and a file sets variables that are not set yet.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "etc/mine.yaml", "listen: ${ADDRESS}\n")
	write(t, dir, "etc/workspaces/ours.yaml", oursYAML)
	write(t, dir, "etc/env", "# the address\nADDRESS=127.0.0.1:0\n")
	t.Setenv("PARLEY_CONFIG", "etc/mine.yaml")
	expect(t, parley(t, dir, "check", "--offline"), 1, "ADDRESS", "")
	expect(t, parley(t, dir, "check", "--offline", "--env-file", "etc/env"), 0, "is sound", "")
	t.Setenv("ADDRESS", "nowhere")
	got := parley(t, dir, "check", "--offline", "--env-file", "etc/env", "--json")
	var r checked
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || got.status != 1 || r.Sound || len(r.Findings) != 1 || r.Findings[0].Key != "listen" || r.Findings[0].Line != 1 {
		t.Errorf("%v %d %+v", err, got.status, r)
	}
}

// TestColours are left out if the environment says so, unless the command line asks for them.
func TestColours(t *testing.T) {
	for _, c := range []struct {
		no, term, force string
		want            bool
	}{{"", "xterm", "", true}, {"1", "xterm", "", false}, {"", "dumb", "", false}, {"1", "dumb", "1", true}} {
		t.Setenv("NO_COLOR", c.no)
		t.Setenv("TERM", c.term)
		t.Setenv(forceColor, c.force)
		if got := colored(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestManualPages: each command of the help has a page with its flags, no text is a command of the page's language,
// and the page of the program has the topics.
func TestManualPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := parley(t, dir, "man", "pages"); got.status != 0 || got.stdout+got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	page := func(name string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(dir, "pages", name+".1"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	list, own := parley(t, dir, "--help").stdout, page("parley")
	for _, name := range listed(t, list) {
		name = "parley-" + name
		if shown := strings.ReplaceAll(name, "-", `\-`); !strings.Contains(own, `\fB`+shown+`\fR(1)`) || !strings.Contains(page(name), `.TH "`+strings.ToUpper(shown)+`" "1"`) {
			t.Errorf("%s has no page, or its page no title", name)
		}
	}
	for _, part := range []string{"EXIT\\-CODES", "4    no daemon runs", "ENVIRONMENT", "PARLEY_CONFIG", "FILES", "data/parley.db"} {
		if !strings.Contains(own, part) {
			t.Errorf("parley(1) has no %s", part)
		}
	}
	if backup := page("parley-backup"); !strings.Contains(backup, "PARLEY BACKUP VERIFY") || !strings.Contains(backup, `\-\-quiet`) || strings.Contains(backup, "\n'") {
		t.Errorf("%s", backup)
	}
	reader, err := exec.LookPath("man")
	if err != nil {
		return
	}
	for _, name := range []string{"parley", "parley-backup", "parley-deliveries"} {
		read := exec.CommandContext(t.Context(), reader, "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", filepath.Join(dir, "pages", name+".1"))
		var said strings.Builder
		read.Stderr, read.Env = &said, append(os.Environ(), "LC_ALL=C.UTF-8")
		if err := read.Run(); err != nil || said.String() != "" {
			t.Errorf("%s: %v\n%s", name, err, &said)
		}
	}
}

// listed returns the commands of the help, without help itself.
func listed(t *testing.T, help string) (names []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+)  +[A-Z]`).FindAllStringSubmatch(help, -1) {
		if m[1] != "help" {
			names = append(names, m[1])
		}
	}
	if len(names) < 25 {
		t.Fatalf("the help lists %v:\n%s", names, help)
	}
	return names
}

// TestCompletion offers values of the configuration, of the commands and of the running daemon, and no files in their place.
func TestCompletion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	p := start(t, dir, os.Args[0], "run")
	ours := conversation{t, p.address()}
	ours.call("POST", "messages", `{"thread_id":"`+threadID+`","content":"letter-0000","client_message_id":"letter-0000","passive":true}`)
	ours.await("letter-0000")
	for line, want := range map[string]string{
		"threads --workspace ": "ours\tweb\n:4\n", "runs --agent ": "echo\techo\n:4\n", "deliveries --state ": "pending\nsending\nsent\nunknown\nfailed\ndropped\n:4\n",
		"threads show ": threadID + "\tletter-0000\n:4\n", "tail --thread ": threadID + "\tletter-0000\n:4\n", "runs show ": ":4\n", "runs ": "list\tLists",
		"init --platform ": "slack\n", "backup ": "verify\tReads a backup, and compares everything with its sums and counts\n:0\n", "status --config ": ":0\n", "--color ": "auto\nalways\nnever\n:4\n",
		"threads show x ": ":4\n",
	} {
		if got := parley(t, dir, append([]string{"__complete"}, strings.Split(line, " ")...)...); got.status != 0 || !strings.HasPrefix(got.stdout, want) {
			t.Errorf("%q: %q", line, got.stdout)
		}
	}
	p.signal(os.Interrupt)
	p.end()
	if got := parley(t, dir, "__complete", "threads", "show", ""); got.stdout != ":4\n" {
		t.Errorf("without a daemon: %q", got.stdout)
	}
}
