package slack

import (
	"encoding/json"
	"strings"

	"parley/ingest/event"
)

// wireCommand is a slash command. Slack posts it as a form, so that its fields
// are strings, also where they say yes or no.
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
	SSLCheck            string `json:"ssl_check"`
}

// wireInteraction is a shortcut on a message, or what somebody did with the
// blocks of one. An app that is installed for a whole organisation may get it
// without a team.
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
}

type wireID struct {
	ID string `json:"id"`
}

type wireTeam struct {
	ID           string `json:"id"`
	EnterpriseID string `json:"enterprise_id"`
}

type wireChannel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// wireContainer is what holds the blocks: a message, its attachment, or a view.
type wireContainer struct {
	MessageTS   string `json:"message_ts"`
	ThreadTS    string `json:"thread_ts"`
	ChannelID   string `json:"channel_id"`
	IsEphemeral bool   `json:"is_ephemeral"`
}

// deed is what somebody did beside saying something.
type deed struct {
	user  string
	typed string // what was typed, or the label of what was pressed
	at    string // its ts; empty where Slack tells none
	// about is the message that it was done to; nil for a command.
	about *wireMessage
	extra []event.Extra
}

// unframe takes an interaction out of its frame, Socket Mode's or that of the
// hook, and returns it with what stands before its fields' names.
func (p *payload) unframe() (raw []byte, path string) {
	if !isObject(p.outer.Payload) {
		return p.raw, ""
	}
	p.raw = p.outer.Payload
	return p.raw, "payload."
}

// readCommand reads a slash command: a message that was typed as it is called.
func (p *payload) readCommand(raw []byte, path string) *payload {
	p.kind = event.KindCommand
	var c wireCommand
	f := fields{path: path, faults: unmarshal(raw, &c, path)}
	if c.SSLCheck != "" && c.Command == "" { // Slack looks whether the address answers
		p.kind = event.KindOther
		return p.ignore(event.ReasonNotAnEvent)
	}
	p.install(c.TeamID, c.EnterpriseID, c.APIAppID, c.IsEnterpriseInstall == "true")
	p.at(c.ChannelID, c.ChannelName, deedID("command", c.TriggerID, p.raw))
	f.present("command", c.Command)
	f.channel("channel_id", c.ChannelID)
	f.present("user_id", c.UserID)
	typed := decode(c.Command)
	if c.Text != "" {
		typed += " " + decode(c.Text)
	}
	p.deed = &deed{user: c.UserID, typed: typed}
	return p.settle(&f)
}

// readInteraction reads a shortcut on a message, and what somebody does with the
// blocks of one. Forms, and what happens outside of any message, are no events.
func (p *payload) readInteraction(raw []byte, path string) *payload {
	var head wireHead
	_ = unmarshal(raw, &head, path)
	if head.Type != "message_action" && head.Type != "block_actions" {
		return p.ignore(event.ReasonInteraction)
	}
	var i wireInteraction
	f := fields{path: path, faults: unmarshal(raw, &i, path)}
	p.install(i.Team.ID, firstOf(i.Enterprise.ID, i.Team.EnterpriseID), i.APIAppID, i.IsEnterpriseInstall)
	if head.Type == "message_action" {
		return p.readShortcut(&i, &f)
	}
	return p.readActions(&i, &f)
}

// readShortcut reads a shortcut that somebody used on a message. Nobody typed
// anything; which shortcut it was is metadata.
func (p *payload) readShortcut(i *wireInteraction, f *fields) *payload {
	p.kind = event.KindCommand
	p.at(i.Channel.ID, i.Channel.Name, deedID("shortcut", firstOf(i.TriggerID, i.ActionTS), p.raw))
	f.channel("channel.id", i.Channel.ID)
	p.deed = &deed{user: i.User.ID, at: i.ActionTS, extra: extra("slack_callback_id", i.CallbackID)}
	f.present("user.id", i.User.ID)
	p.readAbout(i, f)
	return p.settle(f)
}

// readAbout reads the message that something was done to. It may be anybody's,
// of any kind: what has no author is nobody's words.
func (p *payload) readAbout(i *wireInteraction, f *fields) {
	path := f.path + "message."
	p.deed.about = new(wireMessage)
	f.faults = append(f.faults, unmarshal(i.Message, p.deed.about, path)...)
	f.timestamp("message.ts", p.deed.about.TS)
	if p.deed.about.ThreadTS = firstOf(p.deed.about.ThreadTS, i.Container.ThreadTS); p.deed.about.ThreadTS != "" {
		f.timestamp("message.thread_ts", p.deed.about.ThreadTS)
	}
}

// install notes whose installation an interaction is for. One for a whole
// organisation names the organisation, like an authorization.
func (p *payload) install(team, enterprise, app string, whole bool) {
	p.outer = wireOuter{TeamID: team, EnterpriseID: enterprise, APIAppID: app}
	if whole {
		p.outer.Authorizations = []wireAuthorization{{TeamID: team, EnterpriseID: enterprise, IsEnterpriseInstall: true}}
	}
}

// at notes where a deed was done, and the id by which it is known there. An
// interaction does not name the channel's type. The names that direct messages
// have are a hint, no more: a channel may be called like that, too.
func (p *payload) at(channel, name, id string) {
	p.channel, p.ts = channel, id
	if strings.HasPrefix(name, "mpdm-") {
		p.hint = event.ChannelGroup
	}
}

// deedID names what was done by the trigger that Slack gives it, in the place of
// a message's ts: "command-13345224609-738474920-8088930838d88f008e0". What has
// none, or an odd one, is known by a hash.
func deedID(what, trigger string, raw []byte) string {
	id := strings.ReplaceAll(trigger, ".", "-")
	switch {
	case id == "":
		id = bodyKey(raw)[len("body:"):][:32]
	case !isID(id):
		id = bodyKey([]byte(trigger))[len("body:"):][:32]
	}
	return what + "-" + id
}

// extra is one key of metadata that the contract does not know; none without a value.
func extra(key, value string) []event.Extra {
	if value == "" {
		return nil
	}
	quoted, _ := json.Marshal(event.Text(value)) // a string always encodes
	return []event.Extra{{Key: key, Value: quoted}}
}
