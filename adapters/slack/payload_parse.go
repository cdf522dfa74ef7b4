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
	// hint is the channel's type where nobody knows better.
	hint event.ChannelType
	ts   string // of the message, or of the one that the event is about; a deed's id
	// message is what was said (kind message) or how it stands now (kind edit).
	message  *wireMessage
	revision string // of an edit; of a look at something else, its ts
	reaction *wireReaction
	removed  bool  // the reaction was taken back
	deed     *deed // what was done (kinds command and action)
	viewing  *event.Viewing
}

// interactions are the payloads of buttons, forms and shortcuts.
// https://docs.slack.dev/interactivity
var interactions = []string{
	"interactive",
	"block_actions", "block_suggestion", "message_action", "shortcut", "view_submission", "view_closed",
	"interactive_message", "dialog_submission", "dialog_cancellation", "dialog_suggestion", "workflow_step_edit",
}

// payloadOf returns what an envelope's body says. It reads the body if that was not done
// before.
func payloadOf(envelope event.Envelope) *payload {
	if p, ok := envelope.Parsed.(*payload); ok {
		return p
	}
	return parse(envelope.Body)
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
	case p.outer.Type == "slash_commands", p.outer.Type == "" && p.outer.Command != "":
		return p.readCommand(p.unframe())
	case slices.Contains(interactions, p.outer.Type):
		return p.readInteraction(p.unframe())
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
	case "assistant_thread_started", "assistant_thread_context_changed":
		return p.readAssistant(raw, path, head.Type == "assistant_thread_started")
	case "member_joined_channel", "member_left_channel":
		p.kind = event.KindMember
		return p.ignore(event.ReasonMember)
	default:
		return p.ignore(event.ReasonNotAnEvent)
	}
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

// external is the message's id in the workspace: a ts is unique in its channel
// only. A deed's has the trigger's id in the place of the ts.
func (p *payload) external() string { return p.channel + "/" + p.ts }
