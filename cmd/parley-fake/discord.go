package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"

	"parley/adapters/discord/discordtest"
	"parley/cmd/internal/command"
)

// The person at the terminal, the server, and that person's direct messages with the bot.
const (
	discordUser   = "100000000000000001"
	discordServer = "100000000000000002"
	discordDirect = "100000000000000003"
)

const discordHelp = `  > text            send a direct message to the bot
  #channel: text    send a message in a channel; <@` + discordtest.BotUser + `> mentions the bot
  ^ text            reply to the bot's last message
  /ask text         use the slash command
  press label       press a button of the bot
  drop KIND         end the gateway's connection: clean, cut, zombie, reconnect, invalid true, invalid false, forget
  quit
`

// fakeDiscord is a server with one person.
type fakeDiscord struct {
	terminal
	server  *discordtest.Server
	channel string // of the last message

	mu   sync.Mutex
	seen map[string]string // the shown names of channels, by id
	last discordtest.Message
}

// playDiscord plays Discord until the input ends, the person types quit, or ctx ends.
func playDiscord(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var listen string
	var file workspaceFile
	err := command.ParseFlags("discord", args, func(flags *flag.FlagSet) {
		flags.StringVar(&listen, "listen", "127.0.0.1:9997", "address of this Discord")
		file.flags(flags)
	})
	if err != nil {
		return err
	}
	d := &fakeDiscord{terminal: terminal{out: out}, channel: discordDirect, seen: map[string]string{discordDirect: "direct"}}
	d.server, err = discordtest.Start(discordtest.Options{
		Address: listen, OnCall: d.showCall, OnSession: d.showSession,
		OnPost: func(m discordtest.Message) { d.show("posts", m) }, OnChange: d.showChange,
	})
	if err != nil {
		return err
	}
	defer d.server.Close()
	d.server.AddUser(discordtest.User{ID: discordUser, Username: "you", GlobalName: "You"})
	d.server.AddGuild(discordtest.Guild{ID: discordServer, Name: "fake"})
	d.server.SetChannel(discordtest.Channel{ID: discordDirect, Type: discordtest.Direct, User: discordUser})
	text := d.workspace(file)
	said, err := file.save(text)
	if err != nil {
		return err
	}
	d.printf("%s%s\n%s", text, said, discordHelp)
	eachLine(ctx, in, d.do)
	return nil
}

// workspace returns the workspace file for the daemon.
func (d *fakeDiscord) workspace(file workspaceFile) string {
	return file.text("fake-discord", "discord", fmt.Sprintf(`discord:
  token: %s
  api_url: %s
  post_rate: 0
`, discordtest.Token, d.server.URL()))
}

// do executes one typed line. It prints the help for a line that it does not know.
func (d *fakeDiscord) do(line string) {
	name, text, _ := strings.Cut(line, " ")
	channel, isChannel := strings.CutPrefix(strings.TrimSuffix(name, ":"), "#")
	switch {
	case name == ">":
		d.say(discordDirect, discordtest.Message{Content: text})
	case name == "^":
		d.mu.Lock()
		last := d.last
		d.mu.Unlock()
		d.say(cmp.Or(last.Channel, d.channel), discordtest.Message{Content: text, ReplyTo: last.ID})
	case isChannel && channel != "":
		d.say(d.channelOf(channel), discordtest.Message{Content: text})
	case name == "/ask":
		d.server.Command(d.channel, discordUser, text)
	case name == "press":
		d.press(text)
	case name == "drop" && slices.Contains(discordtest.Kinds(), discordtest.Kind(text)):
		d.printf("ended %d connections\n", d.server.Drop(discordtest.Kind(text)))
	case line != "":
		d.printf("%s", discordHelp)
	}
}

// say puts the person's message on Discord and sends its event.
func (d *fakeDiscord) say(channel string, m discordtest.Message) {
	d.channel = channel
	m.Channel, m.Author = channel, discordUser
	d.server.Say(m)
}

// row is a row of buttons.
type row struct {
	Components []struct {
		Label    string `json:"label"`
		CustomID string `json:"custom_id,omitempty"`
		URL      string `json:"url,omitempty"`
	} `json:"components"`
}

// press presses the button with a label of the newest post that has one.
func (d *fakeDiscord) press(label string) {
	for _, m := range slices.Backward(d.server.Posts("")) {
		var rows []row
		_ = json.Unmarshal(m.Components, &rows) // a post without components has no buttons
		for _, r := range rows {
			for _, b := range r.Components {
				switch {
				case b.Label != label || m.Deleted:
				case b.URL != "":
					d.printf("the button opens %s\n", b.URL)
					return
				default:
					d.server.Ask(m.Channel, discordUser, 3, map[string]any{"custom_id": b.CustomID, "component_type": 2},
						map[string]any{"message": map[string]any{"id": m.ID, "components": rows}})
					return
				}
			}
		}
	}
	d.printf("there is no button %q\n", label)
}

// card returns the embeds and the buttons of a post as lines of text.
func card(m discordtest.Message) (lines string) {
	var embeds []struct {
		Description string
		Fields      []struct{ Name, Value string }
		Image       struct{ URL string }
	}
	var rows []row
	_, _ = json.Unmarshal(m.Embeds, &embeds), json.Unmarshal(m.Components, &rows) // a post may have neither
	for _, e := range embeds {
		lines += "\n" + e.Description
		for _, f := range e.Fields {
			lines += "\n" + f.Name + ": " + f.Value
		}
		if e.Image.URL != "" {
			lines += "\n" + e.Image.URL
		}
	}
	for _, r := range rows {
		for _, b := range r.Components {
			lines += "\n[" + b.Label + "]"
		}
	}
	return lines
}

// channelOf returns the id of the channel with that name. It makes the channel if there is none.
func (d *fakeDiscord) channelOf(name string) string {
	id := fmt.Sprint(200_000_000_000_000_000 + uint64(crc32.ChecksumIEEE([]byte(name))))
	d.mu.Lock()
	known := d.seen[id] != ""
	d.seen[id] = "#" + name
	d.mu.Unlock()
	if known {
		return id
	}
	d.server.SetChannel(discordtest.Channel{ID: id, Guild: discordServer, Name: name})
	return id
}

// showCall prints the calls that leave no message. It runs in a goroutine of the server.
func (d *fakeDiscord) showCall(call discordtest.Call) {
	parts := strings.Split(strings.TrimPrefix(call.Path, "/"), "/")
	switch call.Route {
	case discordtest.Typing:
		d.printf("%s: the bot is typing\n", d.place(parts[1]))
	case discordtest.React:
		d.printf("%s: the bot reacts\n", d.place(parts[1]))
	case discordtest.Callback:
		var response struct{ Data struct{ Content string } }
		if json.Unmarshal(call.Body, &response) == nil && response.Data.Content != "" {
			d.printf("the bot tells you alone: %s\n", oneLine(response.Data.Content))
			return
		}
		d.printf("the bot responds\n")
	}
}

// showSession prints that events reach the daemon.
func (d *fakeDiscord) showSession(resumed bool) {
	if resumed {
		d.printf("the daemon resumes its session\n")
	} else {
		d.printf("the daemon begins a session\n")
	}
}

// showChange prints a change of one of the bot's posts.
func (d *fakeDiscord) showChange(m discordtest.Message) {
	if m.Deleted {
		d.printf("%s: the bot deletes [%d]\n", d.place(m.Channel), m.N)
		return
	}
	d.show("edits", m)
}

func (d *fakeDiscord) show(verb string, m discordtest.Message) {
	d.mu.Lock()
	d.last = m
	d.mu.Unlock()
	if len(m.Files) > 0 {
		verb += fmt.Sprintf(" %d files with", len(m.Files))
	}
	d.printf("%s: the bot %s [%d]: %s\n", d.place(m.Channel), verb, m.N, oneLine(m.Content+card(m)))
}

// place returns a channel's shown name, or its id.
func (d *fakeDiscord) place(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return cmp.Or(d.seen[id], id)
}
