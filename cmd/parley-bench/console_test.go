package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/config"
)

// player is somebody at the console.
type player struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	file  string // the workspace's, as it was printed
	ended chan error
}

// sitDown starts the console and reads what it says first.
func sitDown(t *testing.T, args ...string) *player {
	t.Helper()
	input, in := io.Pipe()
	out, output := io.Pipe()
	p := &player{t: t, in: in, lines: make(chan string, 1000), ended: make(chan error, 1)}
	go func() {
		p.ended <- playSlack(t.Context(), append([]string{"-listen", "127.0.0.1:0"}, args...), input, output)
		_ = output.Close()
	}()
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	var file []string
	for len(file) == 0 || !strings.HasPrefix(file[len(file)-1], "# the end") {
		file = append(file, p.next())
	}
	p.file = strings.Join(file, "\n") + "\n"
	p.hears("  quit")
	return p
}

func (p *player) next() string {
	p.t.Helper()
	select {
	case line, more := <-p.lines:
		if more {
			return line
		}
		p.t.Fatal("the console has ended")
	case <-time.After(time.Minute):
		p.t.Fatal("the console says nothing")
	}
	return ""
}

// hears reads until one of the lines is said, and returns those before it.
func (p *player) hears(line string) (before []string) {
	p.t.Helper()
	for {
		next := p.next()
		if next == line {
			return before
		}
		before = append(before, next)
		if len(before) > 100 {
			p.t.Fatalf("%q is not in %q", line, before)
		}
	}
}

func (p *player) types(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// leaves ends the console.
func (p *player) leaves() {
	p.t.Helper()
	p.types("quit")
	if err := <-p.ended; err != nil {
		p.t.Error(err)
	}
}

// settings lays out a folder with the workspace that was printed.
func (p *player) settings(parley string) (dir string, w config.Workspace) {
	p.t.Helper()
	dir = p.t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "workspaces"), 0o700); err != nil {
		p.t.Fatal(err)
	}
	for name, text := range map[string]string{"parley.yaml": parley, "workspaces/fake.yaml": p.file} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	conf, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.file)
	}
	return dir, conf.Workspaces[0]
}

func TestTheConsolesWorkspaceIsSound(t *testing.T) {
	for mode, args := range map[string][]string{"socket": nil, "http": {"-hook", "http://127.0.0.1:1/hooks/slack/fake"}} {
		p := sitDown(t, args...)
		_, w := p.settings("")
		if w.Slack.Mode != mode || w.Slack.BotToken.Reveal() != slacktest.Token || w.Slack.AppToken.Reveal() != slacktest.AppToken || w.ID != "fake" {
			t.Errorf("%s: %+v", mode, w.Slack)
		}
		p.leaves()
	}
}

// TestTheConsoleSaysThatNobodyListens, and what can be said.
func TestTheConsoleSaysThatNobodyListens(t *testing.T) {
	p := sitDown(t)
	p.types("> hello")
	p.hears("nobody took that: it was missed")
	for _, line := range []string{"hello", "# : x", "/", "^"} {
		p.types("help")
		p.hears("  quit")
		if line != "^" { // which is in a thread now
			p.types(line)
			p.hears("  quit")
		}
	}
	p.types("disconnect")
	p.hears("0 sockets are to be replaced")
	p.leaves()
}

// TestTheConsoleEndsWithItsInput and with its context.
func TestTheConsoleEndsWithItsInput(t *testing.T) {
	p := sitDown(t)
	_ = p.in.Close()
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	input, in := io.Pipe()
	defer in.Close()
	if err := playSlack(ctx, []string{"-listen", "127.0.0.1:0"}, input, io.Discard); err != nil {
		t.Error(err)
	}
}

// TestParleyAtTheConsole plays with the real binary over Socket Mode.
func TestParleyAtTheConsole(t *testing.T) {
	parley := buildDaemon(t)
	p := sitDown(t)
	c, err := newChild(parley, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.dir, _ = p.settings("listen: " + c.address + "\n")
	c.args = []string{"run"}
	t.Cleanup(c.end)
	if _, err := c.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.hears("parley opens a socket")
	for _, turn := range []struct{ typed, shown string }{
		{"> hello", "direct: the bot posts [1]: hello"},
		{"#general: <@U0BOT> hi", "#general, in a thread: the bot posts [2]: <@U0BOT> hi"},
		{"#general: the beginning", ""},
		{"^ <@U0BOT> and here?", "#general, in a thread: the bot posts [3]: <@U0BOT> and here?"},
		{"/ask what is up", "#general: the bot posts [4]: /ask what is up"},
		{"disconnect", "parley opens a socket"},
		{"> still there?", "direct: the bot posts [5]: still there?"},
		{"cut", "parley opens a socket"},
	} {
		p.types(turn.typed)
		if turn.shown != "" {
			p.hears(turn.shown)
		}
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	p.types("> are you down?")
	p.hears("nobody took that: it was missed")
	if _, err := c.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.hears("direct: the bot posts [6]: are you down?")
	p.leaves()
}

// TestTheConsoleShowsWhatTheBotDoes beside its posts.
func TestTheConsoleShowsWhatTheBotDoes(t *testing.T) {
	var out strings.Builder
	c, err := newConsole("127.0.0.1:0", &out)
	if err != nil {
		t.Fatal(err)
	}
	defer c.server.Close()
	c.do(t.Context(), "#general: hi")
	act(t, c, "reactions.add", "name", "eyes", "timestamp", c.last.TS)
	act(t, c, "reactions.remove", "name", "eyes", "timestamp", c.last.TS)
	act(t, c, "chat.postEphemeral", "user", consoleUser, "text", "psst")
	act(t, c, "chat.postMessage", "text", "one\ntwo")
	own := c.server.Posts()[0].TS
	act(t, c, "chat.update", "ts", own, "text", "three")
	act(t, c, "chat.delete", "ts", own)
	act(t, c, "chat.startStream", "thread_ts", c.last.TS, "markdown_text", "a", "recipient_user_id", consoleUser, "recipient_team_id", slacktest.Team)
	open := c.server.Posts()[1].TS
	act(t, c, "chat.appendStream", "ts", open, "markdown_text", "b")
	act(t, c, "chat.stopStream", "ts", open, "markdown_text", "c")
	c.told.Wait()
	want := []string{
		"#general: the bot reacts with :eyes:", "#general: the bot takes :eyes: back", "#general: the bot shows you alone: psst",
		"#general: the bot posts [1]: one ⏎ two", "#general: the bot edits [1]: three", "#general: the bot deletes [1]",
		"#general, in a thread: the bot posts [2]: a", "#general, in a thread: the bot streams [2]: ab", "#general, in a thread: the bot ends [2]: abc",
	}
	got := strings.ReplaceAll(out.String(), "nobody took that: it was missed\n", "")
	if got != strings.Join(want, "\n")+"\n" {
		t.Errorf("%s", got)
	}
}

// act makes a call as the bot, in the channel where something was said last.
func act(t *testing.T, c *console, method string, pairs ...string) {
	t.Helper()
	form := url.Values{"token": {slacktest.Token}, "channel": {c.last.Channel}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	response, err := http.PostForm(c.server.URL()+method, form)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(body), `"ok":true`) {
		t.Fatalf("%s: %s, %v", method, body, err)
	}
}
