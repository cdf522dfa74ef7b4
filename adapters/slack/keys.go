package slack

import (
	"cmp"
	"fmt"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// Keys reads the values that the durable accept needs from a body: a callback of the
// Events API, a Socket Mode frame, an interaction, or a bare event. Edits, deletes and
// reactions have a MessageID but no Thread, because the journal knows the message's
// thread. If a payload needs no further processing, Keys sets Result.
func (Normalizer) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	p := payloadOf(envelope)
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
			keys.PostID = messageID(p.channel, p.interaction.target.TS)
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
func (p *payload) messageKeys() (dedupe, altKey string) {
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
func (p *payload) reactionKey() string {
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
func (p *payload) assistantKey() string {
	act := "assistant_thread_context_changed"
	if p.assistant.started {
		act = "assistant_thread_started"
	}
	return dedupeKey(act, p.messageID(), p.revision)
}

// needs names the identity that must be known before the message, or its edited state,
// can be judged. It returns "user" if the message may be ours, mention us or answer us,
// and the payload does not name our user. An app_mention always mentions us.
func (p *payload) needs(facts adapters.Facts) string {
	m := p.message
	depends := m.isBot() || m.rootUser() != "" || mentionsAnyone(m.encoded())
	if p.mention || !depends || p.self(facts).UserID != "" || len(p.outer.AuthedUsers) > 0 {
		return ""
	}
	return "user"
}

// namedChannel returns the channel with the type that the payload gives, by its
// channel_type or by the id of a direct message.
func (p *payload) namedChannel() event.Channel {
	channel := event.Channel{ID: p.channel}
	switch p.channelType {
	case "im", "app_home":
		channel.Type = event.ChannelDirect
	case "mpim":
		channel.Type = event.ChannelGroup
	case "channel", "group", "C", "G":
		channel.Type = event.ChannelRoom
	default:
		if isDirect(p.channel) {
			channel.Type = event.ChannelDirect
		}
	}
	return channel
}

// channelOf returns the channel with its type, as far as the payload, facts or the
// channel's name reveal it.
func (p *payload) channelOf(facts adapters.Facts) event.Channel {
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
func (p *payload) thread(workspace string, facts adapters.Facts) event.ThreadKey {
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

// ThreadKey returns the key of the thread to which a message belongs. In a channel, a
// thread is a root message and its replies, "slack:<workspace>:<channel>:<root ts>". A
// channel message outside a thread is its own root. A direct or group message outside a
// thread belongs to the conversation, "slack:<workspace>:<channel>". The root of a
// thread there also belongs to the conversation, because it was written before anybody
// replied to it; after a reply, Slack shows it with thread_ts == ts. The replies are a
// thread of their own, with a key like a thread's in a channel.
//
// A command comes from outside any thread. In a channel, each command is a thread of
// its own, "slack:<workspace>:<channel>:command-<id>", so that the commands of two
// people never share a transcript. Its ts is "command-<id>". The reply goes to the top
// level of the channel.
//
// The channel's type must be known or Unknown. Unknown counts as a direct message if
// the id begins with D, and as a room otherwise.
func ThreadKey(workspace string, channel event.Channel, ts, threadTS string) event.ThreadKey {
	conversation := event.ThreadKey("slack:" + workspace + ":" + channel.ID)
	if threadTS != "" && threadTS != ts {
		return conversation + event.ThreadKey(":"+threadTS)
	}
	if withDefaultType(channel).Type == event.ChannelRoom {
		return conversation + event.ThreadKey(":"+ts)
	}
	return conversation
}

// parseThreadKey parses a key made by ThreadKey. The root is empty for a direct or
// group conversation and for a command's thread, because neither has a root message for
// replies.
func parseThreadKey(key event.ThreadKey) (channel, root string, err error) {
	parts := strings.Split(string(key), ":")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != string(event.Slack) || !isID(parts[2]) {
		return "", "", fmt.Errorf("thread key %q: must be slack:<workspace>:<channel> or slack:<workspace>:<channel>:<root ts or command>", key)
	}
	if len(parts) == 4 {
		root = parts[3]
		if id, isCommand := strings.CutPrefix(root, commandPrefix); isCommand && isID(id) {
			return parts[2], "", nil
		}
		if !isTimestamp(root) {
			return "", "", fmt.Errorf("thread key %q: the root %q is not a Slack timestamp", key, root)
		}
	}
	return parts[2], root, nil
}

// commandPrefix begins the ts of a command.
const commandPrefix = "command-"

// isCommandThread reports whether a valid key belongs to a command's thread.
func isCommandThread(key event.ThreadKey) bool {
	return strings.Contains(string(key), ":"+commandPrefix)
}

// withDefaultType sets a channel's unknown type by the channel's id.
func withDefaultType(channel event.Channel) event.Channel {
	if channel.Type == event.ChannelUnknown {
		channel.Type = event.ChannelRoom
		if isDirect(channel.ID) {
			channel.Type = event.ChannelDirect
		}
	}
	return channel
}

// isDirect reports whether a channel's id belongs to a direct message.
func isDirect(channel string) bool { return strings.HasPrefix(channel, "D") }

// isID reports whether s can be a Slack id. It allows more than Slack's ids, but no
// character that separates the parts of a key.
func isID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// isChannel reports whether s can be the id of a channel, a direct message or a group conversation.
// No channel's name begins so, because names are in lower case.
func isChannel(s string) bool { return isID(s) && strings.ContainsAny(s[:1], "CDG") }

// isTimestamp reports whether s has the form of a Slack ts, such as
// "1700000000.000100".
func isTimestamp(s string) bool {
	seconds, fraction, ok := strings.Cut(s, ".")
	return ok && isDigits(seconds, 12) && isDigits(fraction, 9)
}

// isTeam reports whether s can be the id of a team or of an organisation.
func isTeam(s string) bool {
	return isID(s) && strings.ContainsAny(s[:1], "TE") && strings.ToUpper(s) == s
}

func isDigits(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}
