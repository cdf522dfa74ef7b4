// Package discord speaks with Discord: it reads the gateway's frames as events.
//
// Three habits of Discord shape it:
//
//   - An update need not be an edit: it also tells of previews, pins and threads
//     that were opened. Only a new edited_timestamp makes it one, to the
//     millisecond, since the preview of an edited text tells it less exactly.
//   - A thread opened on a message is a channel with that message's id.
//   - A frame has no name of its own. Where the gateway's session is known, that
//     and the sequence tell one reaction from its repetition.
package discord

import (
	"crypto/sha256"
	"encoding/hex"

	"parley/adapters"
	"parley/ingest/event"
)

// Normalizer reads gateway frames, {"op","t","s","d"} and, where the receiver
// has added it, "session_id". It has no state; an envelope's workspace is whose
// thread keys it makes.
type Normalizer struct{}

var _ adapters.Normalizer = Normalizer{}

// NeedsUser is what Keys.Needs says of a message that can't be judged before our
// own user id is known.
const NeedsUser = "user"

// Keys reads what custody needs to know. A message that may be ours, mention us
// or answer us needs to know who we are.
func (Normalizer) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	p, err := read(envelope.Body)
	if err != nil {
		return event.Keys{Kind: p.kind, Dedupe: bodyKey(envelope.Body), Settled: event.Refuse(err)}
	}
	keys := event.Keys{Kind: p.kind, Dedupe: p.dedupe}
	if keys.Dedupe == "" {
		keys.Dedupe = bodyKey(envelope.Body)
	}
	if p.channel.ID != "" {
		keys.Thread = ThreadKey(envelope.Workspace, p.channel.ID)
		keys.Channel = p.channel
		keys.Subject = p.targets[0]
	}
	if p.ignored != "" {
		keys.Settled = event.Ignore(p.ignored)
	} else if p.message != nil && p.message.concerns() && facts.Self().UserID == "" {
		keys.Needs = NeedsUser
	}
	return keys
}

// SelfOf reads who we are from a READY frame; false for every other body.
func SelfOf(envelope event.Envelope) (event.Self, bool) {
	frame, err := parse(envelope.Body)
	if err != nil || frame.dispatch() != "READY" {
		return event.Self{}, false
	}
	d, _ := frame.requiredChild("d")
	user, _ := d.requiredChild("user")
	application, _ := d.child("application")
	self := event.Self{UserID: user.requiredSnowflake("id"), AppID: application.snowflake("id")}
	return self, frame.err() == nil
}

func bodyKey(body []byte) string { return "body:" + digest(body) }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
