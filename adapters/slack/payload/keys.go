package payload

import (
	"cmp"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// Keys reads the values that the durable accept needs from a body: a callback of the
// Events API, a Socket Mode frame, an interaction, or a bare event. Edits, deletes and
// reactions have a MessageID but no Thread, because the journal knows the message's
// thread. If a payload needs no further processing, Keys sets Result.
func (Normalizer) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	p := Of(envelope)
	keys := event.Keys{Kind: p.kind, Result: p.earlyResult(facts.Self()), Parsed: p}
	if keys.Result != nil {
		keys.Dedupe = adapters.BodyKey(p.raw)
		return keys
	}
	keys.MessageID, keys.Channel = p.messageID(), p.namedChannel()
	if p.assistant != nil {
		keys.Dedupe = p.assistantKey()
		keys.Thread, keys.MessageID = p.thread(envelope.Workspace, facts), ""
		return keys
	}
	switch p.kind {
	case event.KindMessage:
		keys.Dedupe, keys.AltKey = p.messageKeys()
		keys.Thread = p.thread(envelope.Workspace, facts)
		keys.Needs = p.needs(facts)
	case event.KindCommand, event.KindAction:
		keys.Dedupe = dedupeKey(string(p.kind), keys.MessageID)
		keys.Thread = p.thread(envelope.Workspace, facts)
		if p.interaction.target != nil {
			keys.PostID = MessageID(p.channel, p.interaction.target.TS)
		}
	case event.KindEdit:
		keys.Dedupe = dedupeKey("edit", keys.MessageID, p.revision)
		keys.Needs = p.needs(facts) // an edit may add a mention
	case event.KindDelete:
		keys.Dedupe = dedupeKey("delete", keys.MessageID)
	case event.KindReaction:
		keys.Dedupe = p.reactionKey()
	}
	return keys
}

// messageKeys returns the dedupe key of the payload, and the key of the second payload
// that may report the same message. Slack sends a message that mentions us in one of
// our channels as a message and as an app_mention, in either order.
func (p *Payload) messageKeys() (dedupe, altKey string) {
	message, mention := dedupeKey("message", p.messageID()), dedupeKey("app_mention", p.messageID())
	switch {
	case p.mention:
		return mention, message
	case mentionsAnyone(p.message.encoded()):
		return message, mention
	default:
		return message, ""
	}
}

// reactionKey distinguishes a reaction from the same reaction added again later. It
// uses the event's time, else the event's id, else the body's hash.
func (p *Payload) reactionKey() string {
	act, r := "reaction_added", p.reaction
	if p.removed {
		act = "reaction_removed"
	}
	occasion := cmp.Or(r.EventTS, p.outer.EventID)
	if occasion == "" {
		occasion = adapters.BodyKey(p.raw)
	}
	return dedupeKey(act, p.messageID(), r.User, r.Reaction, occasion)
}

// assistantKey distinguishes the events of an assistant thread by their time.
func (p *Payload) assistantKey() string {
	act := "assistant_thread_context_changed"
	if p.assistant.started {
		act = "assistant_thread_started"
	}
	return dedupeKey(act, p.messageID(), p.revision)
}

// needs names the identity that must be known before the message, or its edited state,
// can be judged. It returns "user" if the message may be ours, mention us or answer us,
// and the payload does not name our user. An app_mention always mentions us.
func (p *Payload) needs(facts adapters.Facts) string {
	m := p.message
	depends := m.isBot() || m.rootUser() != "" || mentionsAnyone(m.encoded())
	if p.mention || !depends || p.self(facts).UserID != "" || len(p.outer.AuthedUsers) > 0 {
		return ""
	}
	return "user"
}

// namedChannel returns the channel with the type that the payload gives, by its
// channel_type or by the id of a direct message.
func (p *Payload) namedChannel() event.Channel {
	channel := event.Channel{ID: p.channel}
	switch p.channelType {
	case "im", "app_home":
		channel.Type = event.ChannelDirect
	case "mpim":
		channel.Type = event.ChannelGroup
	case "channel", "group", "C", "G":
		channel.Type = event.ChannelRoom
	default:
		if IsDirect(p.channel) {
			channel.Type = event.ChannelDirect
		}
	}
	return channel
}

// ChannelOf returns the channel with its type, as far as the payload, facts or the
// channel's name reveal it.
func (p *Payload) channelOf(facts adapters.Facts) event.Channel {
	channel := p.namedChannel()
	if channel.Type == event.ChannelUnknown {
		channel.Type = facts.ChannelType(p.channel)
	}
	if channel.Type == event.ChannelUnknown {
		channel.Type = p.typeHint
	}
	return withDefaultType(channel)
}

// thread returns the thread of the message. An interaction with a message belongs to
// the thread of that message.
func (p *Payload) thread(workspace string, facts adapters.Facts) event.ThreadKey {
	switch channel := p.channelOf(facts); {
	case p.assistant != nil: // the thread may have no message yet
		return ThreadKey(workspace, channel, "", p.ts)
	case p.message != nil:
		return ThreadKey(workspace, channel, p.ts, p.message.ThreadTS)
	case p.interaction.target != nil:
		return ThreadKey(workspace, channel, p.interaction.target.TS, p.interaction.target.ThreadTS)
	default:
		return ThreadKey(workspace, channel, p.ts, "")
	}
}

// dedupeKey joins the parts of a key. The parts may have any length, so dedupeKey
// replaces a key that is too long for a store by its hash.
func dedupeKey(parts ...string) string {
	key := event.Text(strings.Join(parts, ":"))
	if len(key) > 512 {
		return adapters.BodyKey([]byte(key))
	}
	return key
}

// SelfOf returns our identity, as far as an envelope's body names it. A callback names
// the app, and the team and bot user of an installation that may see the event. The
// other fields are zero. SelfOf returns false if the body names nothing. The body must
// be verified.
//
// A recording may contain the events of several teams and apps. A reader of a recording
// must not use the team or app of one envelope to judge the next one.
func SelfOf(envelope event.Envelope) (event.Self, bool) {
	self := Of(envelope).outer.self()
	return self, self != event.Self{}
}

func (o *wireOuter) self() event.Self {
	self := event.Self{AppID: o.APIAppID}
	if len(o.Authorizations) > 0 && o.Authorizations[0].isBot() {
		first := o.Authorizations[0]
		self.TeamID, self.UserID = first.TeamID, first.UserID
		if first.IsEnterpriseInstall {
			self.TeamID = FirstOf(first.EnterpriseID, first.TeamID)
		}
	}
	return self
}

func (a wireAuthorization) isBot() bool { return a.IsBot == nil || *a.IsBot }

// self returns our identity. It takes our user from the payload if facts do not know
// it.
func (p *Payload) self(facts adapters.Facts) event.Self {
	self := facts.Self()
	self.UserID = cmp.Or(self.UserID, p.outer.self().UserID)
	return self
}

// isForeign reports whether the event belongs to another team or app. In a channel that
// several teams share, the callback may name the team in which the event occurred; then
// an authorization names our team. An installation for a whole organisation is
// recognised by the organisation's id or by our user, because the team is only one of
// many.
func (p *Payload) isForeign(self event.Self) bool {
	o := &p.outer
	if self.AppID != "" && o.APIAppID != "" && self.AppID != o.APIAppID {
		return true
	}
	if self.TeamID == "" || (o.TeamID == "" && len(o.Authorizations) == 0) {
		return false
	}
	for _, a := range o.Authorizations {
		whole := a.IsEnterpriseInstall && (SameID(a.EnterpriseID, self.TeamID) || SameID(a.EnterpriseID, self.EnterpriseID))
		if a.TeamID == self.TeamID || SameID(a.UserID, self.UserID) || whole {
			return false
		}
	}
	return o.TeamID != self.TeamID && o.ContextTeamID != self.TeamID && o.EnterpriseID != self.TeamID
}

// earlyResult returns the payload's result if it needs no further processing. Parley
// ignores the messages of other teams, whether or not it can decode them.
func (p *Payload) earlyResult(self event.Self) *event.Result {
	if p.isForeign(self) {
		return event.Ignore(event.ReasonOtherWorkspace)
	}
	return p.result
}

// IsOwn reports whether our bot wrote the message.
func (m *Message) IsOwn(self event.Self) bool {
	return SameID(m.User, self.UserID) || SameID(m.BotID, self.BotID) ||
		(m.BotProfile != nil && SameID(m.BotProfile.AppID, self.AppID))
}
