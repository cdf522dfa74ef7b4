package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
)

// Who talks on the console, and where the bot is written to directly.
const (
	consoleUser   = "U0YOU"
	consoleDirect = "D0YOU"
	consoleSecret = "slacktest-signing"
)

const consoleHelp = `  > words           say something to the bot directly
  #room: words      say it in a channel; <@` + slacktest.BotUser + `> mentions the bot
  ^ words           say it in the thread of what was said last
  /ask words        use a slash command
  disconnect, cut   have the sockets replaced, or break them
  quit
`

// console is a Slack that one person plays by hand.
type console struct {
	server *slacktest.Server
	last   slacktest.Message
	told   sync.WaitGroup // of the deliveries under way

	mu    sync.Mutex
	out   io.Writer
	rooms map[string]string // names of channels, by id
}

// playSlack plays Slack until in ends, somebody quits, or ctx ends. A read of in
// that is under way then is left alone.
func playSlack(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var listen, hook string
	err := parseFlags("slack", args, func(flags *flag.FlagSet) {
		flags.StringVar(&listen, "listen", "127.0.0.1:9998", "where Slack is to be")
		flags.StringVar(&hook, "hook", "", "parley's address for events over HTTP, such as http://127.0.0.1:8484/hooks/slack/fake; Socket Mode where this is empty")
	})
	if err != nil {
		return err
	}
	c, err := newConsole(listen, out)
	if err != nil {
		return err
	}
	defer c.server.Close()
	mode := "socket"
	if hook != "" {
		mode = "http"
		c.server.SetHook(slacktest.Hook{URL: hook, Secret: consoleSecret})
	}
	c.say("%s\n%s", c.workspace(mode), consoleHelp)
	return c.serve(ctx, in)
}

// serve does what the lines say.
func (c *console) serve(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer c.told.Wait()
	defer cancel()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, more := <-lines:
			if !more || strings.TrimSpace(line) == "quit" {
				return nil
			}
			c.do(ctx, strings.TrimSpace(line))
		}
	}
}

func newConsole(listen string, out io.Writer) (*console, error) {
	c := &console{out: out, rooms: map[string]string{consoleDirect: "direct"}, last: slacktest.Message{Channel: consoleDirect}}
	server, err := slacktest.Start(slacktest.Options{
		Address: listen, Echo: true, OnCall: c.called, SocketOptions: slacktest.SocketOptions{QueueFor: time.Second},
		OnPost: func(p slacktest.Post) { c.shows("posts", p) }, OnChange: c.changed,
	})
	if err != nil {
		return nil, err
	}
	c.server = server
	server.AddUser(slacktest.User{ID: consoleUser, Name: "you", DisplayName: "You"})
	server.SetChannel(slacktest.Channel{ID: consoleDirect, Kind: slacktest.DirectMessage, User: consoleUser})
	return c, nil
}

// workspace is the file of a workspace that has its account here.
func (c *console) workspace(mode string) string {
	return fmt.Sprintf(`# workspaces/fake.yaml, beside a parley.yaml that may be empty
id: fake
platform: slack
agent: echo
slack:
  mode: %s
  app_token: %s
  bot_token: %s
  signing_secret: %s
  api_url: %s
  post_rate: 0
# the end of workspaces/fake.yaml
`, mode, slacktest.AppToken, slacktest.Token, consoleSecret, c.server.URL())
}

// do does what one line says.
func (c *console) do(ctx context.Context, line string) {
	name, words, _ := strings.Cut(line, " ")
	room, isRoom := strings.CutPrefix(strings.TrimSuffix(name, ":"), "#")
	switch {
	case name == ">":
		c.tell(ctx, slacktest.Message{Channel: consoleDirect, ChannelType: "im", Text: words})
	case name == "^" && c.last.TS != "":
		m := c.last
		if m.ThreadTS == "" {
			m.ThreadTS = m.TS
		}
		m.TS, m.EventID, m.Text = "", "", words
		c.tell(ctx, m)
	case isRoom && room != "":
		c.tell(ctx, slacktest.Message{Channel: c.room(room), ChannelType: "channel", Text: words})
	case len(name) > 1 && name[0] == '/':
		c.command(ctx, name, words)
	case line == "disconnect":
		c.say("%d sockets are to be replaced\n", c.server.Disconnect("warning", slacktest.All))
	case line == "cut":
		c.say("%d sockets were broken\n", c.server.Cut(slacktest.All))
	case line != "":
		c.say("%s", consoleHelp)
	}
}

// room is the id of the channel with that name, which is there from now on.
func (c *console) room(name string) string {
	id := fmt.Sprintf("C0%X", name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rooms[id] == "" {
		c.rooms[id] = "#" + name
		c.server.SetChannel(slacktest.Channel{ID: id, Name: name, Members: []string{consoleUser}})
	}
	return id
}

// tell says a message, and tells parley of it.
func (c *console) tell(ctx context.Context, m slacktest.Message) {
	m.User = consoleUser
	said, deliveries := c.server.Say(m)
	c.last = said
	c.await(ctx, deliveries[0])
}

// command uses a slash command where something was said last.
func (c *console) command(ctx context.Context, name, words string) {
	payload, err := json.Marshal(map[string]string{
		"team_id": slacktest.Team, "api_app_id": slacktest.App, "channel_id": c.last.Channel, "user_id": consoleUser,
		"command": name, "text": words, "trigger_id": fmt.Sprintf("%d.1.0", time.Now().UnixNano()),
	})
	if err != nil {
		panic(err) // texts always encode
	}
	c.await(ctx, c.server.PushRaw(slacktest.SlashCommands, payload))
}

// await says so if nobody takes a delivery.
func (c *console) await(ctx context.Context, d slacktest.Delivery) {
	c.told.Go(func() {
		if fate, err := d.Wait(ctx); err == nil && fate.State != slacktest.Acked {
			c.say("nobody took that: it was %s\n", fate.State)
		}
	})
}

// called shows those calls that leave no message.
func (c *console) called(call slacktest.Call) {
	form := call.Form
	at := c.place(cmp.Or(form.Get("channel"), form.Get("channel_id")), "")
	switch call.Method {
	case slacktest.LinkStep:
		c.say("parley opens a socket\n")
	case "assistant.threads.setStatus":
		c.say("%s: the bot's status: %q\n", at, form.Get("status"))
	case "chat.postEphemeral":
		c.say("%s: the bot shows you alone: %s\n", at, oneLine(form.Get("text")))
	case "reactions.add":
		c.say("%s: the bot reacts with :%s:\n", at, form.Get("name"))
	case "reactions.remove":
		c.say("%s: the bot takes :%s: back\n", at, form.Get("name"))
	}
}

// changed shows what became of a post.
func (c *console) changed(p slacktest.Post) {
	switch {
	case p.Deleted:
		c.say("%s: the bot deletes [%d]\n", c.place(p.Channel, p.ThreadTS), p.N)
	case p.Edits > 0:
		c.shows("edits", p)
	case p.Stream == slacktest.Streaming:
		c.shows("streams", p)
	default:
		c.shows("ends", p)
	}
}

func (c *console) shows(what string, p slacktest.Post) {
	if len(p.Files) > 0 {
		what += fmt.Sprintf(" %d files with", len(p.Files))
	}
	c.say("%s: the bot %s [%d]: %s\n", c.place(p.Channel, p.ThreadTS), what, p.N, oneLine(p.Shown()))
}

// place is a channel's name, or its id, and whether it is about a thread there.
func (c *console) place(id, thread string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := c.rooms[id]
	if name == "" {
		name = id
	}
	if thread != "" {
		name += ", in a thread"
	}
	return name
}

func (c *console) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, format, args...)
}

func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", " ⏎ ") }
