// Package bluebubbles speaks with iMessage through a BlueBubbles server: it
// reads the server's webhooks as events.
//
// BlueBubbles sends what it finds in Messages' database, often more than once
// and in no certain order. Three habits of it shape this package:
//
//   - A message that changed comes as updated-message, or as new-message again
//     once the server has forgotten it. Both carry it whole, so a hash of what
//     can change, the revision, tells a change from a receipt or a repetition.
//   - An update names no chat. It is then known by the guid of its message alone
//     and waits in custody until that message is there.
//   - A change of a group comes twice, under its own type and as new-message.
//     The two share a dedupe key.
package bluebubbles

import (
	"crypto/sha256"
	"encoding/hex"

	"parley/adapters"
	"parley/ingest/event"
)

// Normalizer reads webhook bodies, {"type","data"}, as the server posts them. It
// has no state; an envelope's workspace is whose thread keys it makes.
type Normalizer struct{}

var _ adapters.Normalizer = Normalizer{}

// Keys reads what custody needs to know. It asks nothing of facts: a webhook
// tells by itself where it belongs, or what it is about.
func (Normalizer) Keys(envelope event.Envelope, _ adapters.Facts) event.Keys {
	p, err := read(envelope.Body)
	if err != nil {
		return event.Keys{Kind: event.KindOther, Dedupe: bodyKey(envelope.Body), Settled: event.Refuse(err)}
	}
	keys := event.Keys{Kind: p.kind, Dedupe: p.dedupe(envelope.Body)}
	if p.ignored != "" {
		keys.Settled = event.Ignore(p.ignored)
		return keys
	}
	keys.Subject = p.subjectID()
	if p.chat != nil {
		keys.Thread = ThreadKey(envelope.Workspace, p.chat.guid)
		keys.Channel = p.chat.channel()
	}
	return keys
}

// dedupe is the payload's name among all of its workspace. A delete happens
// once; a tapback and a change of a group keep their guid however often they
// are told; a message and its edits are told apart by their revision.
func (p payload) dedupe(body []byte) string {
	switch {
	case p.ignored != "" && p.guid == "":
		return bodyKey(body)
	case p.ignored != "":
		return "group:" + p.guid
	case p.kind == event.KindDelete, p.kind == event.KindReaction:
		return string(p.kind) + ":" + p.guid
	}
	return string(p.kind) + ":" + p.guid + ":" + p.revision()
}

// subjectID is the guid of the message that the payload makes or is about.
func (p payload) subjectID() string {
	if p.kind == event.KindReaction {
		return p.tapback.target
	}
	return p.guid
}

func bodyKey(body []byte) string {
	sum := sha256.Sum256(body)
	return "body:" + hex.EncodeToString(sum[:])
}
