package payload

import (
	"parley/adapters"
	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// Normalizer converts gateway frames, {"op","t","s","d"}. The receiver may add "session_id", and
// "parent_id", the channel of the thread in which the event happened.
// A Normalizer has no state; the envelope's workspace is part of the thread key.
type Normalizer struct {
	// AutoThread gives each question in a channel a thread of its own.
	AutoThread bool
}

var _ adapters.Normalizer = Normalizer{}

// NeedsUser is the value of Keys.Needs for a message whose processing needs our own user id.
const NeedsUser = "user"

// Keys returns what the durable accept stores beside the body. A message that may be ours,
// mention us or reply to us needs our user id.
func (n Normalizer) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	p := Of(envelope)
	if p.err != nil {
		return event.Keys{Kind: p.kind, Dedupe: adapters.BodyKey(envelope.Body), Result: event.Refuse(p.err), Parsed: p}
	}
	keys := event.Keys{Kind: p.kind, Dedupe: p.dedupe, Parsed: p}
	if keys.Dedupe == "" {
		keys.Dedupe = adapters.BodyKey(envelope.Body)
	}
	if p.channel.ID != "" {
		keys.Thread = ThreadKey(envelope.Workspace, p.channel.ID)
		keys.Channel = p.channel
		keys.MessageID = p.targets[0]
		n.ownThread(&keys, p, envelope.Workspace, facts)
	}
	if p.ignored != "" {
		keys.Result = event.Ignore(p.ignored)
	} else if p.message != nil && p.message.needsSelf() && facts.Self().UserID == "" {
		keys.Needs = NeedsUser
	}
	return keys
}

// ownThread sets the thread of a question with a thread of its own. A change of one message takes
// the thread of that message, because the payload does not show whether it is such a question.
func (n Normalizer) ownThread(keys *event.Keys, p *Payload, workspace string, facts adapters.Facts) {
	switch {
	case p.message != nil && p.kind == event.KindMessage:
		if n.opensThread(p.message, facts.Self()) {
			keys.Thread = ThreadKey(workspace, p.message.id)
		}
	case p.message != nil && p.kind == event.KindAction:
		keys.PostID = p.message.holder
	case n.AutoThread && p.kind != event.KindCommand && len(p.targets) == 1:
		keys.Thread = ""
	}
}

// SelfOf reads our identity from a READY frame. It returns false for every other body.
func SelfOf(envelope event.Envelope) (event.Self, bool) {
	frame, err := jsonobject.Parse(envelope.Body)
	if err != nil || dispatch(frame) != "READY" {
		return event.Self{}, false
	}
	d, _ := frame.RequiredChild("d")
	user, _ := d.RequiredChild("user")
	application, _ := d.Child("application")
	self := event.Self{UserID: requiredSnowflake(user, "id"), AppID: snowflake(application, "id")}
	return self, frame.Err() == nil
}
