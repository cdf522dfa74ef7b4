package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/cmd/internal/command"
	"parley/config"
)

// person is the person at the terminal.
type person struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	file  string // the printed workspace file
	ended chan error
}

// startSlack plays Slack.
func startSlack(t *testing.T, args ...string) *person {
	t.Helper()
	return start(t, playSlack, args...)
}

// player plays a platform.
type player func(context.Context, []string, io.Reader, io.Writer) error

// start plays a platform and reads the workspace file and the help.
func start(t *testing.T, play player, args ...string) *person {
	t.Helper()
	input, in := io.Pipe()
	out, output := io.Pipe()
	p := &person{t: t, in: in, lines: make(chan string, 1000), ended: make(chan error, 1)}
	go func() {
		p.ended <- play(t.Context(), append([]string{"-listen", "127.0.0.1:0"}, args...), input, output)
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
	p.wait("  quit")
	return p
}

func (p *person) next() string {
	p.t.Helper()
	select {
	case line, more := <-p.lines:
		if more {
			return line
		}
		p.t.Fatal("the fake has ended")
	case <-time.After(time.Minute):
		p.t.Fatal("the fake prints nothing")
	}
	return ""
}

// wait reads lines until one is equal to line, and returns the lines before it.
func (p *person) wait(line string) (before []string) {
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

func (p *person) typeLine(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// quit types quit and waits for the end.
func (p *person) quit() {
	p.t.Helper()
	p.typeLine("quit")
	if err := <-p.ended; err != nil {
		p.t.Error(err)
	}
}

// writeConfig writes a directory with the printed workspace file, and loads it.
func (p *person) writeConfig(parley string) (dir string, w config.Workspace) {
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

func TestPrintedWorkspaceLoads(t *testing.T) {
	for mode, args := range map[string][]string{"socket": nil, "http": {"-hook", "http://127.0.0.1:1/hooks/slack/fake-slack"}} {
		p := startSlack(t, args...)
		_, w := p.writeConfig("")
		account := w.Config.(*slack.Config)
		if account.Mode != mode || account.BotToken.Reveal() != slacktest.Token || account.AppToken.Reveal() != slacktest.AppToken || w.ID != "fake-slack" {
			t.Errorf("%s: %+v", mode, account)
		}
		p.quit()
	}
}

func TestHelpAndUndeliveredMessages(t *testing.T) {
	p := startSlack(t)
	p.typeLine("> hello")
	p.wait("the daemon did not get that: missed")
	for _, line := range []string{"hello", "# : x", "/", "^"} {
		p.typeLine("help")
		p.wait("  quit")
		if line != "^" { // a reply to the first message
			p.typeLine(line)
			p.wait("  quit")
		}
	}
	p.typeLine("disconnect")
	p.wait("asked the daemon to replace 0 sockets")
	p.quit()
}

func TestEndOfInputAndOfContext(t *testing.T) {
	p := startSlack(t)
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

// daemon is the real binary with the printed workspace file.
type daemon struct {
	t        *testing.T
	binary   string
	dir      string
	cmd      *exec.Cmd
	finished chan error
}

func newDaemon(t *testing.T, p *person, agents string) *daemon {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts the daemon")
	}
	binary := filepath.Join(t.TempDir(), "parley")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "parley/cmd/parley").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dir, _ := p.writeConfig("listen: " + listener.Addr().String() + "\n" + agents)
	return &daemon{t: t, binary: binary, dir: dir}
}

// start returns when the process runs. The fake shows when the daemon has connected.
func (d *daemon) start() {
	d.t.Helper()
	cmd := exec.Command(d.binary, "run")
	cmd.Dir, cmd.Stdout, cmd.Stderr = d.dir, d.t.Output(), d.t.Output()
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.cmd, d.finished = cmd, make(chan error, 1)
	finished := d.finished
	go func() { finished <- cmd.Wait() }()
	d.t.Cleanup(func() { _ = cmd.Process.Kill() }) // an error means that the process has ended
}

func (d *daemon) stop() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	if err := <-d.finished; err != nil {
		d.t.Fatal(err)
	}
}

// TestParleyWithTheFake uses the real binary over Socket Mode.
func TestParleyWithTheFake(t *testing.T) {
	p := startSlack(t)
	d := newDaemon(t, p, "")
	d.start()
	p.wait("the daemon opens a socket")
	for _, turn := range []struct{ typed, shown string }{
		{"> hello", "direct: the bot posts [1]: hello"},
		{"#general: <@U0BOT> hi", "#general, in a thread: the bot posts [2]: <@U0BOT> hi"},
		{"#general: the beginning", ""},
		{"^ <@U0BOT> and here?", "#general, in a thread: the bot posts [3]: <@U0BOT> and here?"},
		{"/ask what is up", "#general: the bot posts [4]: /ask what is up"},
		{"^ <@U0BOT> and below it?", "#general, in a thread: the bot posts [5]: <@U0BOT> and below it?"},
		{"disconnect", "the daemon opens a socket"},
		{"> still there?", "direct: the bot posts [6]: still there?"},
		{"cut", "the daemon opens a socket"},
	} {
		p.typeLine(turn.typed)
		if turn.shown != "" {
			p.wait(turn.shown)
		}
	}
	d.stop()
	p.typeLine("> are you down?")
	p.wait("the daemon did not get that: missed")
	d.start()
	p.wait("direct: the bot posts [7]: are you down?")
	d.stop()
	p.quit()
}

func TestActionsOfTheBotAreShown(t *testing.T) {
	var out strings.Builder
	c, err := newFakeSlack("127.0.0.1:0", &out)
	if err != nil {
		t.Fatal(err)
	}
	defer c.server.Close()
	c.do(t.Context(), "#general: hi")
	act(t, c, "reactions.add", "name", "eyes", "timestamp", c.last.TS)
	act(t, c, "reactions.remove", "name", "eyes", "timestamp", c.last.TS)
	act(t, c, "chat.postEphemeral", "user", slackUser, "text", "psst")
	act(t, c, "chat.postMessage", "text", "one\ntwo")
	own := c.server.Posts()[0].TS
	act(t, c, "chat.update", "ts", own, "text", "three")
	act(t, c, "chat.delete", "ts", own)
	act(t, c, "chat.startStream", "thread_ts", c.last.TS, "markdown_text", "a", "recipient_user_id", slackUser, "recipient_team_id", slacktest.Team)
	open := c.server.Posts()[1].TS
	act(t, c, "chat.appendStream", "ts", open, "markdown_text", "b")
	act(t, c, "chat.stopStream", "ts", open, "markdown_text", "c")
	c.sent.Wait()
	want := []string{
		"#general: the bot reacts with :eyes:", "#general: the bot removes :eyes:", "#general: the bot tells you alone: psst",
		"#general: the bot posts [1]: one ⏎ two", "#general: the bot edits [1]: three", "#general: the bot deletes [1]",
		"#general, in a thread: the bot posts [2]: a", "#general, in a thread: the bot streams [2]: ab", "#general, in a thread: the bot ends [2]: abc",
	}
	got := strings.ReplaceAll(out.String(), "the daemon did not get that: missed\n", "")
	if got != strings.Join(want, "\n")+"\n" {
		t.Errorf("%s", got)
	}
}

// act makes a call as the bot, in the channel of the last message.
func act(t *testing.T, c *fakeSlack, method string, pairs ...string) {
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

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{nil, {"nonsense"}, {"slack", "-nonsense"}, {"slack", "extra"}} {
		var wrong command.UsageError
		if err := dispatch(t.Context(), args, strings.NewReader(""), io.Discard); !errors.As(err, &wrong) {
			t.Errorf("%q: %v, want a UsageError", args, err)
		}
	}
}
