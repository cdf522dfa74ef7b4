// Package bluebubbles connects to iMessage through a BlueBubbles server: it converts the
// server's webhooks to events.
//
// BlueBubbles reports the rows of Messages' database, often more than once and in no certain
// order. Three properties of it shape this package:
//
//   - A changed message comes as updated-message, or as new-message if the server has
//     forgotten the message. Both contain the complete message. A hash of the fields that can
//     change, the revision, distinguishes a change from a receipt or a repetition.
//   - An update names no chat. It carries only the guid of its message, and its envelope waits
//     until that message is recorded.
//   - A change of a group comes twice, under its own type and as new-message. Both have the
//     same dedupe key.
package bluebubbles

import (
	"parley/adapters"
	"parley/ingest/event"
)

// Normalizer converts webhook bodies, {"type","data"}, as the server posts them. It has no
// state; the envelope's workspace is part of the thread key. The zero value knows no wake word.
type Normalizer struct {
	wake wakeWords
	// signs says that our sign of work is a tapback.
	signs bool
}

var _ adapters.Normalizer = Normalizer{}

// Keys returns what the durable accept stores beside the body. A webhook names its chat or the
// message that it refers to. A message in a one-to-one chat needs the account's own address,
// because the chat may be the one with oneself.
func (Normalizer) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	p := parse(envelope)
	if p.err != nil {
		return event.Keys{Kind: event.KindOther, Dedupe: p.dedupe, Result: event.Refuse(p.err), Parsed: p}
	}
	keys := event.Keys{Kind: p.kind, Dedupe: p.dedupe, Parsed: p}
	if p.ignored != "" {
		keys.Result = event.Ignore(p.ignored)
		return keys
	}
	keys.MessageID = p.messageID()
	if p.chat != nil {
		keys.Thread = ThreadKey(envelope.Workspace, p.chat.guid)
		keys.Channel = p.chat.channel()
	}
	if p.kind == event.KindMessage && keys.Channel.Type == event.ChannelDirect && facts.Self().Address == "" {
		keys.Needs = "address"
	}
	return keys
}

// key returns the payload's dedupe key, which is unique in its workspace. A delete happens once.
// A tapback and a change of a group keep their guid in every repetition. The revision
// distinguishes a message and its edits.
func (p payload) key(body []byte) string {
	switch {
	case p.ignored != "" && p.guid == "":
		return adapters.BodyKey(body)
	case p.ignored != "":
		return "group:" + p.guid
	case p.kind == event.KindDelete, p.kind == event.KindReaction:
		return string(p.kind) + ":" + p.guid
	}
	return string(p.kind) + ":" + p.guid + ":" + p.revision()
}

// messageID returns the guid of the message that the payload creates, changes or refers to.
func (p payload) messageID() string {
	if p.kind == event.KindReaction {
		return p.tapback.target
	}
	return p.guid
}
