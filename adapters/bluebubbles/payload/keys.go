package payload

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

// NewNormalizer returns a Normalizer that knows the wake words of all groups, and those of single chats.
// signs says that our sign of work is the tapback WorkingTapback.
func NewNormalizer(wake []string, channels []ChannelWake, signs bool) Normalizer {
	return Normalizer{newWakeWords(wake, channels), signs}
}

var _ adapters.Normalizer = Normalizer{}

// Keys returns what the durable accept stores beside the body. A webhook names its chat or the
// message that it refers to. A message in a one-to-one chat needs the account's own address,
// because the chat may be the one with oneself.
func (Normalizer) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	p := Parse(envelope)
	if p.Err != nil {
		return event.Keys{Kind: event.KindOther, Dedupe: p.Dedupe, Result: event.Refuse(p.Err), Parsed: p}
	}
	keys := event.Keys{Kind: p.Kind, Dedupe: p.Dedupe, Parsed: p}
	if p.ignored != "" {
		keys.Result = event.Ignore(p.ignored)
		return keys
	}
	keys.MessageID = p.messageID()
	if p.Chat != nil {
		keys.Thread = ThreadKey(envelope.Workspace, p.Chat.GUID)
		keys.Channel = p.Chat.channel()
	}
	if p.Kind == event.KindMessage && keys.Channel.Type == event.ChannelDirect && facts.Self().Address == "" {
		keys.Needs = "address"
	}
	return keys
}

// key returns the payload's dedupe key, which is unique in its workspace. A delete happens once.
// A tapback and a change of a group keep their guid in every repetition. The revision
// distinguishes a message and its edits.
func (p Payload) key(body []byte) string {
	switch {
	case p.ignored != "" && p.GUID == "":
		return adapters.BodyKey(body)
	case p.ignored != "":
		return "group:" + p.GUID
	case p.Kind == event.KindDelete, p.Kind == event.KindReaction:
		return string(p.Kind) + ":" + p.GUID
	}
	return string(p.Kind) + ":" + p.GUID + ":" + p.revision()
}

// messageID returns the guid of the message that the payload creates, changes or refers to.
func (p Payload) messageID() string {
	if p.Kind == event.KindReaction {
		return p.tapback.target
	}
	return p.GUID
}
