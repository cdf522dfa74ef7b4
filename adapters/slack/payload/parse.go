package payload

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"parley/ingest/event"
)

// Payload is the decoded form of a raw body. It depends on nothing but the body: not on
// our identity, and not on earlier messages.
type Payload struct {
	outer wireOuter
	// raw is the payload without its Socket Mode frame, because each retry by Slack has
	// another frame.
	raw  []byte
	kind event.Kind
	// result is set if the payload needs no further processing. The fields below are then
	// incomplete.
	result *event.Result
	faults event.FieldErrors // of a refused payload

	withheld    bool   // Slack withholds events
	regroups    bool   // a user group has changed
	mention     bool   // the event is an app_mention
	channel     string // of the message, or of the message to which the event refers
	channelType string // Slack's channel type; often missing
	// typeHint is the channel's type if no other source gives it.
	typeHint event.ChannelType
	ts       string // of the message, or of the message to which the event refers; or an interaction's id
	// message is the message (kind message) or its current state (kind edit).
	message     *Message
	revision    string // of an edit; for an assistant thread, the event's ts
	reaction    *wireReaction
	removed     bool         // the user removed the reaction
	interaction *interaction // for the kinds command and action
	assistant   *assistantThread
}

// interactionTypes are the types of the payloads of buttons, forms and shortcuts.
// https://docs.slack.dev/interactivity
var interactionTypes = []string{
	"interactive",
	"block_actions", "block_suggestion", "message_action", "shortcut", "view_submission", "view_closed",
	"interactive_message", "dialog_submission", "dialog_cancellation", "dialog_suggestion", "workflow_step_edit",
}

// Of returns the decoded body of an envelope. It decodes the body only if that
// has not been done before.
func Of(envelope event.Envelope) *Payload {
	if p, ok := envelope.Parsed.(*Payload); ok {
		return p
	}
	return Parse(envelope.Body)
}

// Parse decodes a body: a Socket Mode frame, a callback, an interaction, or a bare
// event.
func Parse(body []byte) *Payload {
	p := &Payload{kind: event.KindOther, raw: body}
	faults := unmarshal(body, &p.outer, "")
	if faults != nil && !(IsObject(body) && json.Valid(body)) {
		return p.refuse(faults)
	}
	path := ""
	if p.outer.Type == "events_api" {
		path = "payload."
		inner := p.outer.Payload
		p.outer = wireOuter{}
		if faults = unmarshal(inner, &p.outer, path); !IsObject(inner) {
			return p.refuse(faults)
		}
		p.raw = inner
	}
	switch {
	case p.outer.Type == "slash_commands", p.outer.Type == "" && p.outer.Command != "":
		return p.readCommand(p.innerPayload())
	case slices.Contains(interactionTypes, p.outer.Type):
		return p.readInteraction(p.innerPayload())
	case p.outer.Type != "event_callback":
		p.outer = wireOuter{}
		return p.read(p.raw, path)
	default:
		p.read(p.outer.Event, path+"event.")
		f := fields{path: path, odd: faults}
		f.formed("authorizations", "team_id", "api_app_id")
		if len(f.faults) > 0 {
			return p.refuse(append(f.faults, p.faults...))
		}
		return p
	}
}

func (p *Payload) ignore(reason string) *Payload {
	p.result = event.Ignore(reason)
	return p
}

func (p *Payload) refuse(faults event.FieldErrors) *Payload {
	p.faults, p.result = faults, event.Refuse(faults)
	return p
}

// read decodes the event itself; path precedes its fields' names in faults.
func (p *Payload) read(raw []byte, path string) *Payload {
	var head wireHead
	if faults := unmarshal(raw, &head, path); !IsObject(raw) {
		return p.refuse(faults)
	}
	switch head.Type {
	case "message":
		return p.readMessage(raw, path, head.Subtype)
	case "app_mention":
		p.mention = true
		return p.readUserMessage(raw, path)
	case "reaction_added", "reaction_removed":
		p.removed = head.Type == "reaction_removed"
		return p.readReaction(raw, path)
	case "assistant_thread_started", "assistant_thread_context_changed":
		return p.readAssistant(raw, path, head.Type == "assistant_thread_started")
	case "member_joined_channel", "member_left_channel":
		p.kind = event.KindMember
		return p.ignore(event.ReasonMember)
	default:
		p.withheld, p.regroups = head.Type == "app_rate_limited", strings.HasPrefix(head.Type, "subteam_")
		return p.ignore(event.ReasonNotAnEvent)
	}
}

func (p *Payload) readReaction(raw []byte, path string) *Payload {
	p.kind = event.KindReaction
	r := new(wireReaction)
	f := fields{path: path, odd: unmarshal(raw, r, path)}
	if r.Item.Type != "message" && r.Item.Type != "" {
		return p.ignore(event.ReasonNotAnEvent)
	}
	p.reaction, p.channel, p.ts = r, r.Item.Channel, r.Item.TS
	f.required("user", r.User)
	f.required("reaction", r.Reaction)
	f.channel("item.channel", r.Item.Channel)
	f.timestamp("item.ts", r.Item.TS)
	return p.checkFields(&f)
}

// checkFields refuses the payload if a field has a fault.
func (p *Payload) checkFields(f *fields) *Payload {
	if len(f.faults) > 0 {
		return p.refuse(f.faults)
	}
	return p
}

// MessageID returns the message's id in the workspace. It includes the channel, because
// a ts is unique only in its channel. An interaction's id has the trigger's id instead
// of the ts.
func (p *Payload) messageID() string { return MessageID(p.channel, p.ts) }

// IsWithheldNotice reports whether Slack says in the payload that it withholds events.
func (p *Payload) IsWithheldNotice() bool { return p.withheld }

// ChangesGroups reports whether the payload tells of a change of a user group.
// https://docs.slack.dev/reference/events/subteam_members_changed
func (p *Payload) ChangesGroups() bool { return p.regroups }

// StartedThread returns the assistant thread whose start the payload reports. It returns false for any
// other payload, and for the event of another team or app than self.
func (p *Payload) StartedThread(self event.Self) (channel, thread string, ok bool) {
	ok = p.assistant != nil && p.assistant.started && p.earlyResult(self) == nil
	return p.channel, p.ts, ok
}

// ThreadQuestion returns what a person says in a thread of a channel, as plain words without mentions. It returns false for any other
// payload, and for the event of another team or app than self.
func (p *Payload) ThreadQuestion(self event.Self) (channel, thread, words string, ok bool) {
	m := p.message
	if p.kind != event.KindMessage || p.earlyResult(self) != nil || m == nil || m.ThreadTS == "" || m.isBot() || m.IsOwn(self) {
		return "", "", "", false
	}
	words = strings.Join(strings.Fields(unescape(tokens.ReplaceAllString(m.Text, " "))), " ")
	return p.channel, m.ThreadTS, words, words != ""
}

// MessageAt returns the channel and the time of the message that the payload brings. It returns false for
// any other payload, and for one that needs no further processing.
func (p *Payload) MessageAt() (channel string, at time.Time, ok bool) {
	if p.result != nil || p.kind != event.KindMessage {
		return "", time.Time{}, false
	}
	return p.channel, SentAt(p.ts), true
}
