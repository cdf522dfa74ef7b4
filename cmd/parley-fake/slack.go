package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/internal/command"
)

// The person at the terminal, that person's direct messages with the bot, and the app's
// signing secret.
const (
	slackUser   = "U0YOU"
	slackDirect = "D0YOU"
	slackSecret = "slacktest-signing"
)

const slackHelp = `  > text            send a direct message to the bot
  #channel: text    send a message in a channel; <@` + slacktest.BotUser + `> mentions the bot
  ^ text            reply in the thread of the last message, yours or the bot's
  /ask text         use a slash command
  press label       press a button of the bot
  disconnect        ask the daemon to replace its sockets
  cut               break the sockets
  quit
`

// fakeSlack is a Slack workspace with one person.
type fakeSlack struct {
	terminal
	server *slacktest.Server
	sent   sync.WaitGroup // the deliveries under way

	mu       sync.Mutex
	last     slacktest.Message // the person's last message, or the bot's post at the top of a channel
	channels map[string]string // the shown names, by id
}

// playSlack plays Slack until the input ends, the person types quit, or ctx ends.
func playSlack(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var listen, hook string
	var file workspaceFile
	err := command.ParseFlags("slack", args, func(flags *flag.FlagSet) {
		flags.StringVar(&listen, "listen", "127.0.0.1:9998", "address of this Slack")
		flags.StringVar(&hook, "hook", "", "send events over HTTP to this URL of the daemon, such as http://127.0.0.1:8484/hooks/slack/fake-slack; if empty, over Socket Mode")
		file.flags(flags)
	})
	if err != nil {
		return err
	}
	s, err := newFakeSlack(listen, out)
	if err != nil {
		return err
	}
	defer s.server.Close()
	mode := "socket"
	if hook != "" {
		mode = "http"
		s.server.SetHook(slacktest.Hook{URL: hook, Secret: slackSecret})
	}
	text := s.workspace(file, mode)
	said, err := file.save(text)
	if err != nil {
		return err
	}
	s.printf("%s%s\n%s", text, said, slackHelp)
	ctx, cancel := context.WithCancel(ctx)
	defer s.sent.Wait()
	defer cancel()
	eachLine(ctx, in, func(line string) { s.do(ctx, line) })
	return nil
}

func newFakeSlack(listen string, out io.Writer) (*fakeSlack, error) {
	s := &fakeSlack{
		terminal: terminal{out: out}, channels: map[string]string{slackDirect: "direct"}, last: slacktest.Message{Channel: slackDirect},
	}
	server, err := slacktest.Start(slacktest.Options{
		Address: listen, Echo: true, OnCall: s.showCall, SocketOptions: slacktest.SocketOptions{QueueFor: time.Second},
		OnPost: s.showNew, OnChange: s.showChange,
	})
	if err != nil {
		return nil, err
	}
	s.server = server
	server.AddUser(slacktest.User{ID: slackUser, Name: "you", DisplayName: "You"})
	server.SetChannel(slacktest.Channel{ID: slackDirect, Kind: slacktest.DirectMessage, User: slackUser})
	return s, nil
}

// workspace returns the workspace file for the daemon.
func (s *fakeSlack) workspace(file workspaceFile, mode string) string {
	return file.text("fake-slack", "slack", fmt.Sprintf(`slack:
  mode: %s
  app_token: %s
  bot_token: %s
  signing_secret: %s
  api_url: %s
  post_rate: 0
`, mode, slacktest.AppToken, slacktest.Token, slackSecret, s.server.URL()))
}

// do executes one typed line. It prints the help for a line that it does not know.
func (s *fakeSlack) do(ctx context.Context, line string) {
	name, text, _ := strings.Cut(line, " ")
	channel, isChannel := strings.CutPrefix(strings.TrimSuffix(name, ":"), "#")
	switch {
	case name == ">":
		s.say(ctx, slacktest.Message{Channel: slackDirect, ChannelType: "im", Text: text})
	case name == "^" && s.lastMessage().TS != "":
		m := s.lastMessage()
		m.ThreadTS = cmp.Or(m.ThreadTS, m.TS)
		m.TS, m.EventID, m.Text = "", "", text
		s.say(ctx, m)
	case isChannel && channel != "":
		s.say(ctx, slacktest.Message{Channel: s.channel(channel), ChannelType: "channel", Text: text})
	case len(name) > 1 && name[0] == '/':
		s.command(ctx, name, text)
	case name == "press":
		s.press(ctx, text)
	case line == "disconnect":
		s.printf("asked the daemon to replace %d sockets\n", s.server.Disconnect("warning", slacktest.All))
	case line == "cut":
		s.printf("broke %d sockets\n", s.server.Cut(slacktest.All))
	case line != "":
		s.printf("%s", slackHelp)
	}
}

// channel returns the id of the channel with that name. It makes the channel if there is
// none.
func (s *fakeSlack) channel(name string) string {
	id := fmt.Sprintf("C0%X", name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[id] == "" {
		s.channels[id] = "#" + name
		s.server.SetChannel(slacktest.Channel{ID: id, Name: name, Members: []string{slackUser}})
	}
	return id
}

// say puts the person's message on Slack and sends its event.
func (s *fakeSlack) say(ctx context.Context, m slacktest.Message) {
	m.User = slackUser
	said, deliveries := s.server.Say(m)
	s.setLast(said)
	s.await(ctx, deliveries[0])
}

func (s *fakeSlack) lastMessage() slacktest.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *fakeSlack) setLast(m slacktest.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = m
}

// command sends a slash command from the channel of the last message.
func (s *fakeSlack) command(ctx context.Context, name, text string) {
	payload, err := json.Marshal(map[string]string{
		"team_id": slacktest.Team, "api_app_id": slacktest.App, "channel_id": s.lastMessage().Channel, "user_id": slackUser,
		"command": name, "text": text, "trigger_id": fmt.Sprintf("%d.1.0", time.Now().UnixNano()),
	})
	if err != nil {
		panic(err) // strings always encode
	}
	s.await(ctx, s.server.PushRaw(slacktest.SlashCommands, payload))
}

// press presses the button with a label of the newest post that has one.
func (s *fakeSlack) press(ctx context.Context, label string) {
	for _, p := range slices.Backward(s.server.Posts()) {
		var blocks []struct{ Elements []json.RawMessage }
		_ = json.Unmarshal(p.Blocks, &blocks) // a post without blocks has no buttons
		for _, b := range blocks {
			for _, element := range b.Elements {
				var button struct {
					Type, URL string
					Text      struct{ Text string }
				}
				if json.Unmarshal(element, &button) != nil || button.Type != "button" || button.Text.Text != label || p.Deleted {
					continue
				}
				if button.URL != "" {
					s.printf("the button opens %s\n", button.URL)
					return
				}
				payload := fmt.Appendf(nil, `{"type":"block_actions","api_app_id":%q,"team":{"id":%q},"user":{"id":%q},"trigger_id":"%d.1.0","channel":{"id":%q},
					"container":{"type":"message","message_ts":%q,"channel_id":%[5]q,"thread_ts":%[7]q},"message":{"bot_id":%[8]q,"ts":%[6]q,"thread_ts":%[7]q},"actions":[%[9]s]}`,
					slacktest.App, slacktest.Team, slackUser, time.Now().UnixNano(), p.Channel, p.TS, p.ThreadTS, slacktest.BotID, element)
				s.await(ctx, s.server.PushRaw(slacktest.Interactive, payload))
				return
			}
		}
	}
	s.printf("there is no button %q\n", label)
}

// await prints a line if the daemon does not acknowledge a delivery.
func (s *fakeSlack) await(ctx context.Context, d slacktest.Delivery) {
	s.sent.Go(func() {
		if end, err := d.Wait(ctx); err == nil && end.State != slacktest.Acked {
			s.printf("the daemon did not get that: %s\n", end.State)
		}
	})
}

// showCall prints the calls that leave no message.
func (s *fakeSlack) showCall(call slacktest.Call) {
	form := call.Form
	at := s.place(cmp.Or(form.Get("channel"), form.Get("channel_id")), "")
	switch call.Method {
	case slacktest.LinkStep:
		s.printf("the daemon opens a socket\n")
	case "assistant.threads.setStatus":
		s.printf("%s: the bot's status: %q\n", at, form.Get("status"))
	case "chat.postEphemeral":
		s.printf("%s: the bot tells you alone: %s\n", at, oneLine(form.Get("text")))
	case "reactions.add":
		s.printf("%s: the bot reacts with :%s:\n", at, form.Get("name"))
	case "reactions.remove":
		s.printf("%s: the bot removes :%s:\n", at, form.Get("name"))
	}
}

// showChange prints a change of one of the bot's posts.
func (s *fakeSlack) showChange(p slacktest.Post) {
	switch {
	case p.Deleted:
		s.printf("%s: the bot deletes [%d]\n", s.place(p.Channel, p.ThreadTS), p.N)
	case p.Edits > 0:
		s.showPost("edits", p)
	case p.Stream == slacktest.Streaming:
		s.showPost("streams", p)
	default:
		s.showPost("ends", p)
	}
}

// showNew shows a new post of the bot. One at the top of a channel is the message in whose thread the person can reply.
func (s *fakeSlack) showNew(p slacktest.Post) {
	s.showPost("posts", p)
	if p.ThreadTS == "" && !strings.HasPrefix(p.Channel, "D") {
		s.setLast(slacktest.Message{Channel: p.Channel, ChannelType: "channel", TS: p.TS})
	}
}

func (s *fakeSlack) showPost(verb string, p slacktest.Post) {
	if len(p.Files) > 0 {
		verb += fmt.Sprintf(" %d files with", len(p.Files))
	}
	s.printf("%s: the bot %s [%d]: %s\n", s.place(p.Channel, p.ThreadTS), verb, p.N, oneLine(p.Shown()))
}

// place returns a channel's shown name, or its id, and says if the post is in a thread.
func (s *fakeSlack) place(id, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := cmp.Or(s.channels[id], id)
	if thread != "" {
		name += ", in a thread"
	}
	return name
}
