package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// Keys reads what custody needs of a body, which is a callback of the Events
// API, a Socket Mode frame, an interaction, or an event alone. Edits, deletes
// and reactions have a Subject and no Thread: the journal knows where the
// message stands. Other payloads are settled here.
func (n Normalizer) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	p := payloadOf(envelope)
	keys := event.Keys{Kind: p.kind, Settled: p.settled(facts.Self()), Parsed: p}
	if keys.Settled != nil {
		keys.Dedupe = bodyKey(p.raw)
		return keys
	}
	keys.Subject, keys.Channel = p.external(), p.told()
	if p.viewing != nil {
		keys.Dedupe = p.viewingKey()
		keys.Thread, keys.Subject = p.thread(n.workspace(envelope), facts), ""
		return keys
	}
	switch p.kind {
	case event.KindMessage:
		keys.Dedupe, keys.Twin = p.messageKeys()
		keys.Thread = p.thread(n.workspace(envelope), facts)
		keys.Opens = p.opens(keys.Thread)
		keys.Needs = p.needs(facts)
	case event.KindCommand, event.KindAction:
		keys.Dedupe = dedupeKey(string(p.kind), keys.Subject)
		keys.Thread = p.thread(n.workspace(envelope), facts)
		if p.deed.about != nil {
			keys.Holder = p.channel + "/" + p.deed.about.TS
		}
	case event.KindEdit:
		keys.Dedupe = dedupeKey("edit", keys.Subject, p.revision)
		keys.Needs = p.needs(facts) // it may add a mention
	case event.KindDelete:
		keys.Dedupe = dedupeKey("delete", keys.Subject)
	case event.KindReaction:
		keys.Dedupe = p.reactionKey()
	}
	return keys
}

// messageKeys are the dedupe keys of the payload and of the other one that may
// tell of the same message: one that mentions us in a channel where we are comes
// as a message and as an app_mention, in either order.
func (p *payload) messageKeys() (dedupe, twin string) {
	message, mention := dedupeKey("message", p.external()), dedupeKey("app_mention", p.external())
	switch {
	case p.mention:
		return mention, message
	case mentionsAnyone(p.message.Text):
		return message, mention
	default:
		return message, ""
	}
}

// reactionKey tells a reaction from the same one put on again later: by the
// event's time, else by its id, else by its bytes.
func (p *payload) reactionKey() string {
	act, r := "reaction_added", p.reaction
	if p.removed {
		act = "reaction_removed"
	}
	occasion := r.EventTS
	if occasion == "" {
		occasion = p.outer.EventID
	}
	if occasion == "" {
		occasion = bodyKey(p.raw)
	}
	return dedupeKey(act, p.external(), r.User, r.Reaction, occasion)
}

// viewingKey tells one look of somebody's from another, by the event's time.
func (p *payload) viewingKey() string {
	act := "assistant_thread_context_changed"
	if p.viewing.Opened {
		act = "assistant_thread_started"
	}
	return dedupeKey(act, p.external(), p.revision)
}

// needs names what must be known of ourselves before the message, or its new state, can be judged:
// our user, where the message may be ours, mention us or answer us, and the
// payload does not tell. An app_mention mentions us by itself.
func (p *payload) needs(facts adapters.Facts) string {
	m := p.message
	depends := m.isBot() || m.ParentUserID != "" || mentionsAnyone(m.Text)
	if p.mention || !depends || p.self(facts).UserID != "" || len(p.outer.AuthedUsers) > 0 {
		return ""
	}
	return "user"
}

// told is the channel with its type as the payload tells it: in words, or by an
// id that only a direct message has.
func (p *payload) told() event.Channel {
	channel := event.Channel{ID: p.channel}
	switch p.channelType {
	case "im", "app_home":
		channel.Type = event.ChannelDirect
	case "mpim":
		channel.Type = event.ChannelGroup
	case "channel", "group", "C", "G":
		channel.Type = event.ChannelRoom
	default:
		if strings.HasPrefix(p.channel, "D") {
			channel.Type = event.ChannelDirect
		}
	}
	return channel
}

// place is the channel with its type as far as anybody knows it.
func (p *payload) place(facts adapters.Facts) event.Channel {
	channel := p.told()
	if channel.Type == event.ChannelUnknown {
		channel.Type = facts.ChannelType(p.channel)
	}
	if channel.Type == event.ChannelUnknown {
		channel.Type = p.hint
	}
	return orGuess(channel)
}

// thread is where the message belongs. What was done to a message belongs to
// that one's thread.
func (p *payload) thread(workspace string, facts adapters.Facts) event.ThreadKey {
	switch channel := p.place(facts); {
	case p.viewing != nil: // of a thread that may have no message yet
		return ThreadKey(workspace, channel, "", p.ts)
	case p.message != nil:
		return ThreadKey(workspace, channel, p.ts, p.message.ThreadTS)
	case p.deed.about != nil:
		return ThreadKey(workspace, channel, p.deed.about.TS, p.deed.about.ThreadTS)
	default:
		return ThreadKey(workspace, channel, p.ts, "")
	}
}

// opens says whether the message is the root of its thread.
func (p *payload) opens(thread event.ThreadKey) bool {
	_, root, err := parseThreadKey(thread)
	return err == nil && root == p.ts
}

// bodyKey is the dedupe key of a payload that has no better one.
func bodyKey(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "body:" + hex.EncodeToString(sum[:])
}

// dedupeKey joins the parts of a key. Some are opaque to us, and a store has
// limits: what it could not hold as a key is replaced by a hash.
func dedupeKey(parts ...string) string {
	key := event.Text(strings.Join(parts, ":"))
	if len(key) > 512 {
		return bodyKey([]byte(key))
	}
	return key
}

// ThreadKey names the conversation that a message belongs to. In a channel that
// is the root message and its replies, "slack:<workspace>:<channel>:<root ts>",
// where a message outside a thread is its own root. A direct or group message
// outside a thread belongs to the conversation, "slack:<workspace>:<channel>",
// and so does a thread's root there, since it was said in the conversation
// before anybody answered it (Slack then shows it with thread_ts == ts); the
// replies are a thread of their own, named as in a channel.
//
// A command comes from outside every thread. In a channel it is a thread of its
// own, "slack:<workspace>:<channel>:command-<id>", so that no two people's
// commands share a transcript; its ts is "command-<id>". It is answered at the
// top level of the channel.
//
// The channel's type must be known or Unknown, which counts as a direct message
// for an id that begins with D and as a room otherwise.
func ThreadKey(workspace string, channel event.Channel, ts, threadTS string) event.ThreadKey {
	conversation := event.ThreadKey("slack:" + workspace + ":" + channel.ID)
	if threadTS != "" && threadTS != ts {
		return conversation + event.ThreadKey(":"+threadTS)
	}
	if orGuess(channel).Type == event.ChannelRoom {
		return conversation + event.ThreadKey(":"+ts)
	}
	return conversation
}

// parseThreadKey takes apart what ThreadKey has made. The root is empty for the
// conversation of a direct or group message, and for a command's thread: neither
// has a message under which a reply could stand.
func parseThreadKey(key event.ThreadKey) (channel, root string, err error) {
	parts := strings.Split(string(key), ":")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != string(event.Slack) || !isID(parts[2]) {
		return "", "", fmt.Errorf("thread key %q: must be slack:<workspace>:<channel> or slack:<workspace>:<channel>:<root ts or command>", key)
	}
	if len(parts) == 4 {
		root = parts[3]
		if id, isCommand := strings.CutPrefix(root, "command-"); isCommand && isID(id) {
			return parts[2], "", nil
		}
		if !isTimestamp(root) {
			return "", "", fmt.Errorf("thread key %q: the root %q is no Slack timestamp", key, root)
		}
	}
	return parts[2], root, nil
}

// isCommandThread reports whether a valid key is that of a command's thread.
func isCommandThread(key event.ThreadKey) bool { return strings.Contains(string(key), ":command-") }

// orGuess fills in the type of a channel that nobody has told it of.
func orGuess(channel event.Channel) event.Channel {
	if channel.Type == event.ChannelUnknown {
		channel.Type = event.ChannelRoom
		if strings.HasPrefix(channel.ID, "D") {
			channel.Type = event.ChannelDirect
		}
	}
	return channel
}

// isID says whether s can be one of Slack's ids. It is wider than what Slack
// hands out, but holds nothing that separates the parts of a key.
func isID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// isTimestamp says whether s has the form of a Slack ts: "1700000000.000100".
func isTimestamp(s string) bool {
	seconds, fraction, ok := strings.Cut(s, ".")
	return ok && isDigits(seconds, 12) && isDigits(fraction, 9)
}

func isDigits(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}
