package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/cmd/internal/command"
)

// The person at the terminal, the chats, and the secret of the daemon's hook.
const (
	macSecret = "bluebubblestest-hook-secret"
	macYou    = "+15555550142"
	macDirect = "iMessage;-;" + macYou
	macSelf   = "iMessage;-;" + bluebubblestest.Address
	macGroup  = "iMessage;+;chat640021977"
)

const macHelp = `  > text            write to the owner of the account
  #group: text      write in a group; the word parley wakes the bot
  ^ text            reply to the bot's last message
  me: text          write as the owner of the account, to you
  self: text        write as the owner, to oneself
  edit text         edit your last message
  unsend            take your last message back
  love              add a tapback to the bot's last message
  lose on|off       lose all webhooks: the daemon reads the messages at its next poll
  away on|off       make the server unreachable
  replay            send all webhooks again, as the server does after a restart
  quit
`

// fakeMac is a BlueBubbles server with one person.
type fakeMac struct {
	terminal
	server *bluebubblestest.Server

	mu       sync.Mutex
	loses    bool
	last     bluebubblestest.Message // the person's last message
	answered bluebubblestest.Message // the bot's
}

// playBlueBubbles plays a BlueBubbles server until the input ends, the person types quit, or
// ctx ends.
func playBlueBubbles(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var listen string
	var file workspaceFile
	private := true
	err := command.ParseFlags("bluebubbles", args, func(flags *flag.FlagSet) {
		flags.StringVar(&listen, "listen", "127.0.0.1:9996", "address of this server")
		flags.BoolVar(&private, "private-api", true, "the server has the private API")
		file.flags(flags)
	})
	if err != nil {
		return err
	}
	s, err := newFakeMac(listen, private, out)
	if err != nil {
		return err
	}
	defer s.server.Close()
	text := s.workspace(file)
	said, err := file.save(text)
	if err != nil {
		return err
	}
	s.printf("%s%s\n%s", text, said, macHelp)
	eachLine(ctx, in, s.do)
	return nil
}

func newFakeMac(listen string, private bool, out io.Writer) (*fakeMac, error) {
	s := &fakeMac{terminal: terminal{out: out}}
	server, err := bluebubblestest.Start(bluebubblestest.Options{
		Listen: listen, PrivateAPI: private, OnCall: s.showCall, OnSend: s.showSend, Webhooks: s.webhooks,
	})
	if err != nil {
		return nil, err
	}
	s.server = server
	server.AddContact(bluebubblestest.Contact{Address: macYou, Name: "You"})
	server.SetChat(bluebubblestest.Chat{GUID: macGroup, Name: "group"})
	for _, guid := range []string{macDirect, macSelf} {
		server.SetChat(bluebubblestest.Chat{GUID: guid})
	}
	return s, nil
}

// workspace returns the workspace file for the daemon.
func (s *fakeMac) workspace(file workspaceFile) string {
	return file.text("fake-imessage", "bluebubbles", fmt.Sprintf(`policy: {allow_users: ["%s", "%s"]}
bluebubbles:
  url: %s
  password: %s
  webhook_secret: %s
  wake: [parley]
  poll: 5s
  post_rate: 0
`, macYou, bluebubblestest.Address, s.server.URL(), bluebubblestest.Password, macSecret))
}

// do executes one typed line. It prints the help for a line that it does not know.
func (s *fakeMac) do(line string) {
	name, text, _ := strings.Cut(line, " ")
	s.mu.Lock()
	last, answered := s.last, s.answered
	s.mu.Unlock()
	switch {
	case name == ">":
		s.say(bluebubblestest.Message{Chat: macDirect, From: macYou, Text: text})
	case name == "#group:":
		s.say(bluebubblestest.Message{Chat: macGroup, From: macYou, Text: text})
	case name == "^" && answered.GUID != "":
		s.say(bluebubblestest.Message{Chat: answered.Chat, From: macYou, Text: text, ReplyTo: answered.GUID})
	case name == "me:":
		s.say(bluebubblestest.Message{Chat: macDirect, Text: text})
	case name == "self:":
		s.say(bluebubblestest.Message{Chat: macSelf, Text: text})
	case name == "edit" && last.GUID != "":
		s.server.Edit(last.GUID, text)
	case line == "unsend" && last.GUID != "":
		s.server.Unsend(last.GUID)
	case line == "love" && answered.GUID != "":
		s.server.React(answered.GUID, macYou, "love")
	case name == "lose":
		s.mu.Lock()
		s.loses = text != "off"
		s.mu.Unlock()
	case name == "away":
		s.server.SetAway(text != "off")
	case line == "replay":
		s.printf("sent %d webhooks again\n", len(s.server.Replay()))
	case line != "":
		s.printf("%s", macHelp)
	}
}

func (s *fakeMac) say(m bluebubblestest.Message) {
	m, _ = s.server.Say(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = m
}

func (s *fakeMac) webhooks(string) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loses {
		return nil
	}
	return []time.Duration{0}
}

// showCall prints the calls that leave no message.
func (s *fakeMac) showCall(call bluebubblestest.Call) {
	switch call.Route {
	case "POST webhook":
		s.printf("the daemon registers its webhook\n")
	case "POST chat/typing":
		s.printf("%s: the bot types\n", macPlace(call.Path))
	case "POST chat/read":
		s.printf("%s: the bot has read it\n", macPlace(call.Path))
	}
}

func (s *fakeMac) showSend(m bluebubblestest.Message) {
	s.mu.Lock()
	s.answered = m
	s.mu.Unlock()
	verb := "writes"
	if m.ReplyTo != "" {
		verb = "replies"
	}
	if len(m.Attachments) > 0 {
		verb = "sends the file " + m.Attachments[0].Name
	}
	s.printf("%s: the bot %s: %s\n", macPlace(m.Chat), verb, oneLine(m.Text))
}

// macPlace returns the shown name of the chat in a path or a guid.
func macPlace(text string) string {
	for guid, name := range map[string]string{macDirect: "direct", macGroup: "#group", macSelf: "self"} {
		if strings.Contains(text, guid) {
			return name
		}
	}
	return text
}
