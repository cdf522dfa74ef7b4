package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// wireAction is one action of a user on one element of a message's blocks.
// https://docs.slack.dev/reference/interaction-payloads/block_actions-payload
type wireAction struct {
	ActionID string    `json:"action_id"`
	Text     *wireText `json:"text"`
	Value    string    `json:"value"`
	ActionTS string    `json:"action_ts"`

	SelectedOption  *wireOption  `json:"selected_option"`
	SelectedOptions []wireOption `json:"selected_options"`
	SelectedDate    string       `json:"selected_date"`
	SelectedTime    string       `json:"selected_time"`
	SelectedInstant int64        `json:"selected_date_time"`

	SelectedUser          string   `json:"selected_user"`
	SelectedUsers         []string `json:"selected_users"`
	SelectedChannel       string   `json:"selected_channel"`
	SelectedChannels      []string `json:"selected_channels"`
	SelectedConversation  string   `json:"selected_conversation"`
	SelectedConversations []string `json:"selected_conversations"`
}

type wireText struct {
	Type string `json:"type"` // plain_text or mrkdwn
	Text string `json:"text"`
}

type wireOption struct {
	Text wireText `json:"text"`
}

// readActions reads a user's actions on the blocks of a message, as one message. Its
// content is the visible label of each action, one line each (Slack sends one action at
// a time). The metadata key slack_action has the action in Slack's form, or a list if
// there are several actions. readActions ignores an action in a view or in an ephemeral
// post, because it belongs to no message, and a button that opened an address.
func (p *Payload) readActions(i *wireInteraction, f *fields) *Payload {
	where := i.Container
	// An action without a message is on the app's unfurl of a user's link.
	isUnfurl := !IsObject(i.Message) && where.MessageTS != ""
	if where.IsEphemeral || (!IsObject(i.Message) && !isUnfurl) {
		return p.ignore(event.ReasonInteraction)
	}
	p.interaction = &interaction{user: i.User.ID, team: i.User.TeamID}
	if p.readActionList(i, f) {
		p.interaction = nil
		return p.ignore(event.ReasonInteraction)
	}
	p.kind = event.KindAction
	channel := FirstOf(i.Channel.ID, where.ChannelID)
	p.setLocation(channel, i.Channel.Name, interactionID("action", FirstOf(i.TriggerID, p.interaction.ts), p.raw))
	f.channel("channel.id", channel)
	f.required("user.id", i.User.ID)
	if isUnfurl {
		p.interaction.target = &Message{TS: where.MessageTS, ThreadTS: where.ThreadTS}
		f.timestamp("container.message_ts", where.MessageTS)
		if where.ThreadTS != "" {
			f.timestamp("container.thread_ts", where.ThreadTS)
		}
	} else {
		p.readTarget(i, f)
	}
	return p.checkFields(f)
}

// readActionList reads the actions of the payload. opens says that one is a button of ours that opened an address.
func (p *Payload) readActionList(i *wireInteraction, f *fields) (opens bool) {
	var labels []string
	for n, raw := range i.Actions {
		var a wireAction
		name := fmt.Sprintf("actions[%d].", n)
		f.odd = append(f.odd, unmarshal(raw, &a, f.path+name)...)
		f.formed(name + "action_id")
		if label := a.label(); label != "" {
			labels = append(labels, label)
		}
		p.interaction.ts = FirstOf(p.interaction.ts, a.ActionTS)
		opens = opens || strings.HasPrefix(a.ActionID, adapters.LinkPrefix)
		if strings.HasPrefix(a.ActionID, adapters.ButtonPrefix) {
			p.interaction.pressed = event.Text(a.ActionID)
		}
	}
	p.interaction.text = strings.Join(labels, "\n")
	p.interaction.extra = actionMetadata(i.Actions)
	return opens
}

// label returns the visible text of the pressed, selected or typed value. It is empty
// if the user cleared a selection.
func (a *wireAction) label() string {
	var chosen []string
	for _, option := range a.SelectedOptions {
		chosen = append(chosen, option.Text.decoded())
	}
	if a.SelectedOption != nil {
		chosen = append(chosen, a.SelectedOption.Text.decoded())
	}
	for _, user := range append(a.SelectedUsers, a.SelectedUser) {
		chosen = append(chosen, mentionOf("<@", user))
	}
	for _, channel := range append(append(a.SelectedChannels, a.SelectedChannel), append(a.SelectedConversations, a.SelectedConversation)...) {
		chosen = append(chosen, mentionOf("<#", channel))
	}
	chosen = append(chosen, event.Text(a.SelectedDate), event.Text(a.SelectedTime))
	if a.SelectedInstant != 0 {
		chosen = append(chosen, time.Unix(a.SelectedInstant, 0).UTC().Format(time.RFC3339))
	}
	if words := joinNonEmpty(chosen); words != "" {
		return words
	}
	if a.Text != nil && a.Text.Text != "" {
		return a.Text.decoded()
	}
	return event.Text(a.Value)
}

// decoded returns the visible text. Only mrkdwn is encoded.
func (t wireText) decoded() string {
	if t.Type == "mrkdwn" {
		return decode(t.Text)
	}
	return event.Text(t.Text)
}

// mentionOf returns Slack's token for an id, with the given opening such as "<@". It is
// empty if id is not a valid id.
func mentionOf(open, id string) string {
	if !IsID(id) {
		return ""
	}
	return open + id + ">"
}

// joinNonEmpty joins the non-empty strings with commas.
func joinNonEmpty(words []string) string {
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), ", ")
}

// actionMetadata returns the metadata of the actions; none without actions.
func actionMetadata(actions []json.RawMessage) []event.Extra {
	if len(actions) == 0 {
		return nil
	}
	value, _ := json.Marshal(actions) // encoding never fails, because the values were decoded from JSON
	if len(actions) == 1 {
		value = actions[0]
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, value) // never fails for the same reason
	return []event.Extra{{Key: "slack_action", Value: json.RawMessage(event.Text(compact.String()))}}
}
