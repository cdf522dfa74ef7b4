package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/ingest/event"
)

// wireAction is what somebody did with one element of a message's blocks.
// https://docs.slack.dev/reference/interaction-payloads/block_actions-payload
type wireAction struct {
	Type     string    `json:"type"`
	ActionID string    `json:"action_id"`
	BlockID  string    `json:"block_id"`
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

// maxAction bounds what metadata holds of a payload's actions, in bytes. Slack's
// own limits keep to a quarter of it, but for rich text.
// https://docs.slack.dev/reference/block-kit/block-elements
const maxAction = 16 << 10

// readActions reads what somebody did with the blocks of a message. It is one
// message, its content what a reader would say was pressed, a line for each
// action (Slack sends one at a time); the metadata key slack_action has the
// action as Slack describes it, or a list of them where there are several. What
// was done in a view, or in a post that one user alone can see, is about no
// message.
func (p *payload) readActions(i *wireInteraction, f *fields) *payload {
	where := i.Container
	isUnfurl := !isObject(i.Message) && where.MessageTS != "" // of somebody's link, which the app made
	if where.IsEphemeral || (!isObject(i.Message) && !isUnfurl) {
		return p.ignore(event.ReasonInteraction)
	}
	p.kind = event.KindAction
	channel := firstOf(i.Channel.ID, where.ChannelID)
	p.deed = &deed{user: i.User.ID}
	p.readEach(i, f)
	p.at(channel, i.Channel.Name, deedID("action", firstOf(i.TriggerID, p.deed.at), p.raw))
	f.channel("channel.id", channel)
	f.present("user.id", i.User.ID)
	if isUnfurl {
		p.deed.about = &wireMessage{TS: where.MessageTS, ThreadTS: where.ThreadTS}
		f.timestamp("container.message_ts", where.MessageTS)
		if where.ThreadTS != "" {
			f.timestamp("container.thread_ts", where.ThreadTS)
		}
	} else {
		p.readAbout(i, f)
	}
	return p.settle(f)
}

// readEach reads the actions of the payload.
func (p *payload) readEach(i *wireInteraction, f *fields) {
	var labels []string
	for n, raw := range i.Actions {
		var a wireAction
		f.faults = append(f.faults, unmarshal(raw, &a, fmt.Sprintf("%sactions[%d].", f.path, n))...)
		if label := a.label(); label != "" {
			labels = append(labels, label)
		}
		p.deed.at = firstOf(p.deed.at, a.ActionTS)
	}
	p.deed.typed = strings.Join(labels, "\n")
	p.deed.extra = actionExtra(i.Actions)
}

// label is what a reader would say was pressed, chosen or typed; empty where a
// choice was taken back.
func (a *wireAction) label() string {
	var chosen []string
	for _, option := range a.SelectedOptions {
		chosen = append(chosen, option.Text.words())
	}
	if a.SelectedOption != nil {
		chosen = append(chosen, a.SelectedOption.Text.words())
	}
	for _, user := range append(a.SelectedUsers, a.SelectedUser) {
		chosen = append(chosen, token("<@", user))
	}
	for _, channel := range append(append(a.SelectedChannels, a.SelectedChannel), append(a.SelectedConversations, a.SelectedConversation)...) {
		chosen = append(chosen, token("<#", channel))
	}
	chosen = append(chosen, event.Text(a.SelectedDate), event.Text(a.SelectedTime))
	if a.SelectedInstant != 0 {
		chosen = append(chosen, time.Unix(a.SelectedInstant, 0).UTC().Format(time.RFC3339))
	}
	if words := joined(chosen); words != "" {
		return words
	}
	if a.Text != nil && a.Text.Text != "" {
		return a.Text.words()
	}
	return event.Text(a.Value)
}

// words are the text as it is shown: only mrkdwn is encoded.
func (t wireText) words() string {
	if t.Type == "mrkdwn" {
		return decode(t.Text)
	}
	return event.Text(t.Text)
}

// token is how Slack writes what an id names; empty for none.
func token(open, id string) string {
	if !isID(id) {
		return ""
	}
	return open + id + ">"
}

// joined joins what is not empty.
func joined(words []string) string {
	var out []string
	for _, word := range words {
		if word != "" {
			out = append(out, word)
		}
	}
	return strings.Join(out, ", ")
}

// actionExtra is the metadata of the actions. Of what is too large it says what
// it was: the envelope has the rest.
func actionExtra(actions []json.RawMessage) []event.Extra {
	value, _ := json.Marshal(actions) // they were read from JSON
	if len(actions) == 1 {
		value = actions[0]
	}
	if len(actions) == 0 {
		return nil
	}
	if len(value) > maxAction {
		var a wireAction
		_ = json.Unmarshal(actions[0], &a)
		value, _ = json.Marshal(map[string]any{
			"type": a.Type, "action_id": clip(a.ActionID), "block_id": clip(a.BlockID), "actions": len(actions), "too_large": true,
		})
	}
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil {
		return nil
	}
	return []event.Extra{{Key: "slack_action", Value: json.RawMessage(event.Text(compact.String()))}}
}

// clip keeps an id within what Slack allows one: 255 characters.
func clip(id string) string {
	if len(id) > 255 {
		id = id[:255]
	}
	return event.Text(id)
}
