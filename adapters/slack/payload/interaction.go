package payload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// wireCommand is a slash command. Slack posts it as a form, so all fields are strings,
// including is_enterprise_install.
// https://docs.slack.dev/interactivity/implementing-slash-commands#app_command_handling
type wireCommand struct {
	TeamID              string `json:"team_id"`
	EnterpriseID        string `json:"enterprise_id"`
	IsEnterpriseInstall string `json:"is_enterprise_install"`
	APIAppID            string `json:"api_app_id"`
	ChannelID           string `json:"channel_id"`
	ChannelName         string `json:"channel_name"`
	UserID              string `json:"user_id"`
	Command             string `json:"command"`
	Text                string `json:"text"`
	TriggerID           string `json:"trigger_id"`
	ResponseURL         string `json:"response_url"`
	SSLCheck            string `json:"ssl_check"`
}

// wireInteraction is a shortcut on a message, or an action on a message's blocks. If
// the app is installed for a whole organisation, the payload may have no team.
// https://docs.slack.dev/reference/interaction-payloads
type wireInteraction struct {
	Type                string            `json:"type"`
	APIAppID            string            `json:"api_app_id"`
	Team                wireTeam          `json:"team"`
	Enterprise          wireID            `json:"enterprise"`
	IsEnterpriseInstall bool              `json:"is_enterprise_install"`
	User                wireID            `json:"user"`
	Channel             wireChannel       `json:"channel"`
	Container           wireContainer     `json:"container"`
	Message             json.RawMessage   `json:"message"`
	Actions             []json.RawMessage `json:"actions"`
	CallbackID          string            `json:"callback_id"`
	TriggerID           string            `json:"trigger_id"`
	ActionTS            string            `json:"action_ts"`
	ResponseURL         string            `json:"response_url"`
}

type wireID struct {
	ID     string `json:"id"`
	TeamID string `json:"team_id"` // of a user
}

type wireTeam struct {
	ID           string `json:"id"`
	EnterpriseID string `json:"enterprise_id"`
}

type wireChannel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// wireContainer identifies the container of the blocks: a message, its attachment, or a
// view.
type wireContainer struct {
	MessageTS   string `json:"message_ts"`
	ThreadTS    string `json:"thread_ts"`
	ChannelID   string `json:"channel_id"`
	IsEphemeral bool   `json:"is_ephemeral"`
}

// interaction is a command, a shortcut or an action of a user.
type interaction struct {
	user string
	team string // of the user; empty if the payload does not name it
	text string // the typed text, or the label of the selected element
	word string // the name of a command without a text
	// pressed is the id of a pressed button of ours; empty for none.
	pressed string
	// responseURL takes answers to a command or a shortcut where the bot may not post; responder is the id
	// of its Response.
	responseURL, responder string
	ts                     string // time of the interaction, as a ts; empty if Slack gives none
	// target is the message with which the user interacted; nil for a command.
	target *Message
	extra  []event.Extra
}

// innerPayload removes the frame of Socket Mode or of the hook from an interaction. It
// returns the interaction, and the path that precedes its fields' names.
func (p *Payload) innerPayload() (raw []byte, path string) {
	if !IsObject(p.outer.Payload) {
		return p.raw, ""
	}
	p.raw = p.outer.Payload
	return p.raw, "payload."
}

// readCommand reads a slash command. Its text is the command's name and the typed
// arguments.
func (p *Payload) readCommand(raw []byte, path string) *Payload {
	p.kind = event.KindCommand
	var c wireCommand
	f := fields{path: path, odd: unmarshal(raw, &c, path)}
	if c.SSLCheck != "" && c.Command == "" { // Slack is checking that the address answers
		p.kind = event.KindOther
		return p.ignore(event.ReasonNotAnEvent)
	}
	p.setInstallation(c.TeamID, c.EnterpriseID, c.APIAppID, c.IsEnterpriseInstall == "true")
	p.setLocation(c.ChannelID, c.ChannelName, interactionID("command", c.TriggerID, p.raw))
	f.formed("team_id", "api_app_id", "text")
	f.required("command", c.Command)
	f.channel("channel_id", c.ChannelID)
	f.required("user_id", c.UserID)
	typed := decode(c.Command)
	if c.Text != "" {
		typed += " " + decode(c.Text)
	}
	p.interaction = &interaction{user: c.UserID, text: typed, responseURL: c.ResponseURL, responder: p.ts}
	if c.Text == "" {
		p.interaction.word = strings.TrimPrefix(c.Command, "/")
	}
	return p.checkFields(&f)
}

// readInteraction reads a shortcut on a message or an action on a message's blocks.
// Forms, and interactions outside messages, are not events.
func (p *Payload) readInteraction(raw []byte, path string) *Payload {
	var i wireInteraction
	f := fields{path: path, odd: unmarshal(raw, &i, path)}
	if i.Type != "message_action" && i.Type != "block_actions" {
		return p.ignore(event.ReasonInteraction)
	}
	f.formed("team", "api_app_id", "actions")
	p.setInstallation(i.Team.ID, FirstOf(i.Enterprise.ID, i.Team.EnterpriseID), i.APIAppID, i.IsEnterpriseInstall)
	if i.Type == "message_action" {
		return p.readShortcut(&i, &f)
	}
	return p.readActions(&i, &f)
}

// readShortcut reads a shortcut on a message. The user typed nothing, so the text is
// empty; the metadata names the shortcut.
func (p *Payload) readShortcut(i *wireInteraction, f *fields) *Payload {
	p.kind = event.KindCommand
	p.setLocation(i.Channel.ID, i.Channel.Name, interactionID("shortcut", FirstOf(i.TriggerID, i.ActionTS), p.raw))
	f.channel("channel.id", i.Channel.ID)
	p.interaction = &interaction{user: i.User.ID, team: i.User.TeamID, ts: i.ActionTS, extra: extra("slack_callback_id", i.CallbackID),
		responseURL: i.ResponseURL, responder: ShortcutsOf(i.Channel.ID, i.User.ID)}
	f.required("user.id", i.User.ID)
	p.readTarget(i, f)
	return p.checkFields(f)
}

// readTarget reads the message with which the user interacted. It may be of any author
// and kind. A message without an author is not quoted.
func (p *Payload) readTarget(i *wireInteraction, f *fields) {
	path := f.path + "message."
	p.interaction.target = new(Message)
	f.odd = append(f.odd, unmarshal(i.Message, p.interaction.target, path)...)
	f.formed("message.thread_ts")
	f.timestamp("message.ts", p.interaction.target.TS)
	if p.interaction.target.ThreadTS = FirstOf(p.interaction.target.ThreadTS, i.Container.ThreadTS); p.interaction.target.ThreadTS != "" {
		f.timestamp("message.thread_ts", p.interaction.target.ThreadTS)
	}
}

// setInstallation sets the installation for which the interaction is. An installation
// for a whole organisation names the organisation, like an authorization.
func (p *Payload) setInstallation(team, enterprise, app string, whole bool) {
	p.outer = wireOuter{TeamID: team, EnterpriseID: enterprise, APIAppID: app}
	if whole {
		p.outer.Authorizations = []wireAuthorization{{TeamID: team, EnterpriseID: enterprise, IsBot: new(false), IsEnterpriseInstall: true}}
	}
}

// setLocation sets the channel and the id of an interaction. An interaction does not
// give the channel's type. The name of a group conversation is only a hint, because a
// channel may have such a name too.
func (p *Payload) setLocation(channel, name, id string) {
	p.channel, p.ts = channel, id
	if strings.HasPrefix(name, "mpdm-") {
		p.typeHint = event.ChannelGroup
	}
}

// interactionID returns the id of an interaction, which takes the place of a message's
// ts. It contains Slack's trigger: "command-13345224609-738474920-8088930838d88f008e0".
// A missing or malformed trigger is replaced by a hash.
func interactionID(kind, trigger string, raw []byte) string {
	id := strings.ReplaceAll(trigger, ".", "-")
	switch {
	case id == "":
		id = adapters.Digest(raw)[:32]
	case !IsID(id):
		id = adapters.Digest([]byte(trigger))[:32]
	}
	return kind + "-" + id
}

// extra returns one metadata key that the contract does not define; none if the value
// is empty.
func extra(key, value string) []event.Extra {
	if value == "" {
		return nil
	}
	return []event.Extra{{Key: key, Value: json.RawMessage(jsonString(event.Text(value)))}}
}

// ResponsesName is the name of the response URLs in adapters.State.
const ResponsesName = "commands"

// ResponsesFor is the time for which a response URL takes messages.
// https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
const ResponsesFor = 30 * time.Minute

// Response is the response URL of a command or a shortcut.
type Response struct {
	ID   string    `json:"id"` // "command-<id>", or as ShortcutsOf returns it
	URL  string    `json:"url"`
	At   time.Time `json:"at"` // when the command arrived
	Used int       `json:"used,omitempty"`
}

// ShortcutsOf returns the id of the responses to a user's shortcuts in a channel. Their answers go to threads, whose
// address names no shortcut.
func ShortcutsOf(channel, user string) string { return channel + "/" + user }

// rememberCommand stores the response URL of a command or a shortcut, and forgets those that have ended.
func (p *Payload) rememberCommand(ctx context.Context, envelope event.Envelope, state adapters.State) error {
	if p.interaction.responseURL == "" {
		return nil
	}
	err := adapters.UpdateList(ctx, state, ResponsesName, func(list []Response) []Response {
		if slices.ContainsFunc(list, func(c Response) bool { return c.ID == p.interaction.responder && c.URL == p.interaction.responseURL }) {
			return list
		}
		list = slices.DeleteFunc(list, func(c Response) bool { return envelope.ReceivedAt.Sub(c.At) > ResponsesFor })
		return append(list, Response{ID: p.interaction.responder, URL: p.interaction.responseURL, At: envelope.ReceivedAt})
	})
	if err != nil {
		return fmt.Errorf("store a command: %w", err)
	}
	return nil
}
