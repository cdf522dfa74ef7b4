package slack

import (
	"encoding/json"
	"slices"

	"parley/ingest/event"
)

// payload is what a raw body says, before anything is known of who we are or of
// what was said before.
type payload struct {
	outer wireOuter
	// raw is the payload without its Socket Mode frame, which is another one
	// each time that Slack sends the payload again.
	raw  []byte
	kind event.Kind
	// fate is the end of what is no event to keep; all below is then incomplete.
	fate *event.Fate

	mention     bool   // the event is an app_mention
	channel     string // of the message, or of the one that the event is about
	channelType string // as Slack names it; often left out
	ts          string // of the message, or of the one that the event is about
	// message is what was said (kind message) or how it stands now (kind edit).
	message  *wireMessage
	revision string // of an edit
	reaction *wireReaction
	removed  bool // the reaction was taken back
}

// interactions are the payloads of buttons, forms, shortcuts and commands.
// https://docs.slack.dev/interactivity
var interactions = []string{
	"interactive", "slash_commands",
	"block_actions", "block_suggestion", "message_action", "shortcut", "view_submission", "view_closed",
	"interactive_message", "dialog_submission", "dialog_cancellation", "dialog_suggestion", "workflow_step_edit",
}

// parse reads a body: a Socket Mode frame, a callback, an interaction, or an
// event alone.
func parse(body []byte) *payload {
	p := &payload{kind: event.KindOther, raw: body}
	faults := unmarshal(body, &p.outer, "")
	if faults != nil && !(isObject(body) && json.Valid(body)) {
		return p.refuse(faults)
	}
	path := ""
	if p.outer.Type == "events_api" {
		path = "payload."
		inner := p.outer.Payload
		p.outer = wireOuter{}
		if faults = unmarshal(inner, &p.outer, path); !isObject(inner) {
			return p.refuse(faults)
		}
		p.raw = inner
	}
	switch {
	case slices.Contains(interactions, p.outer.Type), p.outer.Type == "" && p.outer.Command != "":
		if p.outer.EnvelopeID != "" && p.outer.Payload != nil {
			p.raw = p.outer.Payload
		}
		return p.ignore(event.ReasonInteraction)
	case p.outer.Type != "event_callback":
		p.outer = wireOuter{}
		return p.read(p.raw, path)
	case faults != nil:
		return p.refuse(faults)
	default:
		return p.read(p.outer.Event, path+"event.")
	}
}

func (p *payload) ignore(reason string) *payload {
	p.fate = event.Ignore(reason)
	return p
}

func (p *payload) refuse(faults event.FieldErrors) *payload {
	p.fate = event.Refuse(faults)
	return p
}

// read reads the event itself; path stands before its fields' names.
func (p *payload) read(raw []byte, path string) *payload {
	var head wireHead
	if faults := unmarshal(raw, &head, path); !isObject(raw) {
		return p.refuse(faults)
	}
	switch head.Type {
	case "message":
		return p.readMessage(raw, path, head.Subtype)
	case "app_mention":
		p.mention = true
		return p.readWords(raw, path)
	case "reaction_added", "reaction_removed":
		p.removed = head.Type == "reaction_removed"
		return p.readReaction(raw, path)
	case "member_joined_channel", "member_left_channel":
		p.kind = event.KindMember
		return p.ignore(event.ReasonMember)
	default:
		return p.ignore(event.ReasonNotAnEvent)
	}
}

func (p *payload) readMessage(raw []byte, path, subtype string) *payload {
	switch subtype {
	case "message_changed":
		return p.readEdit(raw, path)
	case "message_deleted":
		return p.readDelete(raw, path)
	case "message_replied": // tells of a reply that comes as a message, too
		return p.ignore(event.ReasonNotAnEvent)
	case "channel_join", "channel_leave", "group_join", "group_leave":
		p.kind = event.KindMember
		return p.ignore(event.ReasonMember)
	default:
		return p.readWords(raw, path)
	}
}

// readWords reads a message that somebody said.
func (p *payload) readWords(raw []byte, path string) *payload {
	p.kind = event.KindMessage
	m := new(wireMessage)
	f := fields{path: path, faults: unmarshal(raw, m, path)}
	if !p.mention && !isWords(m) {
		return p.ignore(event.ReasonSystemMessage)
	}
	p.message, p.channel, p.channelType, p.ts = m, m.Channel, m.ChannelType, m.TS
	f.channel("channel", m.Channel)
	f.message(m)
	return p.settle(&f)
}

// message asks for what every message has, wherever it stands.
func (f *fields) message(m *wireMessage) {
	f.timestamp("ts", m.TS)
	if m.ThreadTS != "" {
		f.timestamp("thread_ts", m.ThreadTS)
	}
	if m.author() == "" {
		f.present("user", "")
	}
}

// isWords says whether a message carries somebody's words. Other subtypes are
// sentences that Slack makes of what people do ("set the channel topic"), and
// must not stand in their name. A client_msg_id tells what was typed in a
// client, whatever subtype it has.
// https://docs.slack.dev/reference/events/message#subtypes
func isWords(m *wireMessage) bool {
	switch m.Subtype {
	case "", "bot_message", "file_share", "me_message", "thread_broadcast", "slackbot_response":
		return true
	default:
		return m.ClientMsgID != ""
	}
}

// readEdit reads a message_changed. Slack sends it for much that nobody did: an
// unfurled link, a reply counted, a broadcast reply's echo.
func (p *payload) readEdit(raw []byte, path string) *payload {
	p.kind = event.KindEdit
	var change wireChange
	f := fields{path: path, faults: unmarshal(raw, &change, path)}
	f.channel("channel", change.Channel)
	f.path += "message."
	m := new(wireMessage)
	f.faults = append(f.faults, unmarshal(change.Message, m, f.path)...)
	p.message, p.channel, p.channelType, p.ts = m, change.Channel, change.ChannelType, m.TS
	switch {
	case m.Subtype == "tombstone": // a thread's root goes, its replies stay
		p.kind, p.message = event.KindDelete, nil
		f.timestamp("ts", m.TS)
		return p.settle(&f)
	case !isObject(change.Message):
		return p.settle(&f)
	case !isWords(m):
		return p.ignore(event.ReasonSystemMessage)
	}
	f.message(m)
	var before *wireMessage
	if isObject(change.PreviousMessage) {
		before = new(wireMessage)
		_ = json.Unmarshal(change.PreviousMessage, before) // what can be read of it serves to compare
	}
	if len(f.faults) == 0 && !changed(before, m) {
		return p.ignore(event.ReasonNoChange)
	}
	p.revision = revision(before, m, change.TS)
	return p.settle(&f)
}

// changed says whether the words or files of a message are others than before.
// Where the payload does not say what was before, the time of the edit decides.
func changed(before, now *wireMessage) bool {
	if before == nil {
		return now.Edited != nil
	}
	return content(before) != content(now) || !slices.EqualFunc(before.Files, now.Files, func(a, b wireFile) bool {
		return a.ID == b.ID && a.Name == b.Name && a.Mode == b.Mode
	})
}

// revision tells this state of a message from its others: the time of the edit,
// or of the event where Slack changed the message without one (a bot's streamed
// words, a file taken away).
func revision(before, now *wireMessage, eventTS string) string {
	if now.Edited == nil || (before != nil && before.Edited != nil && before.Edited.TS == now.Edited.TS) {
		return eventTS
	}
	return now.Edited.TS
}

func (p *payload) readDelete(raw []byte, path string) *payload {
	p.kind = event.KindDelete
	var change wireChange
	f := fields{path: path, faults: unmarshal(raw, &change, path)}
	p.channel, p.channelType, p.ts = change.Channel, change.ChannelType, change.DeletedTS
	f.channel("channel", p.channel)
	f.timestamp("deleted_ts", p.ts)
	return p.settle(&f)
}

func (p *payload) readReaction(raw []byte, path string) *payload {
	p.kind = event.KindReaction
	r := new(wireReaction)
	f := fields{path: path, faults: unmarshal(raw, r, path)}
	if r.Item.Type != "message" && r.Item.Type != "" {
		return p.ignore(event.ReasonNotAnEvent)
	}
	p.reaction, p.channel, p.ts = r, r.Item.Channel, r.Item.TS
	f.present("user", r.User)
	f.present("reaction", r.Reaction)
	f.channel("item.channel", r.Item.Channel)
	f.timestamp("item.ts", r.Item.TS)
	return p.settle(&f)
}

// settle refuses the payload if a field is at fault.
func (p *payload) settle(f *fields) *payload {
	if len(f.faults) > 0 {
		return p.refuse(f.faults)
	}
	return p
}

// external is the message's id in the workspace: a ts is unique in its channel only.
func (p *payload) external() string { return p.channel + "/" + p.ts }
