package payload

import (
	"fmt"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

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
	conversation := Conversation(workspace, channel.ID)
	if threadTS != "" && threadTS != ts {
		return conversation + event.ThreadKey(":"+threadTS)
	}
	if withDefaultType(channel).Type == event.ChannelRoom {
		return conversation + event.ThreadKey(":"+ts)
	}
	return conversation
}

// Conversation returns the key of the thread of messages in a channel that are in no thread under a message.
func Conversation(workspace, channel string) event.ThreadKey {
	return event.ThreadKey("slack:" + workspace + ":" + channel)
}

// NewThread returns the key of a new thread in a channel, by an id of ours: like a command's, it comes from outside any
// thread, and its first post is at the top level of the channel. A direct conversation is one thread.
func NewThread(workspace, channel, id string) event.ThreadKey {
	if IsDirect(channel) {
		return Conversation(workspace, channel)
	}
	return Conversation(workspace, channel) + event.ThreadKey(":"+CommandPrefix+id)
}

// ThreadUnder returns the key of the thread under a message, by its external id; empty for an id in another form, and
// for a direct message, which people answer in the conversation.
func ThreadUnder(workspace, id string) event.ThreadKey {
	channel, ts, err := SplitID(id)
	if err != nil || IsDirect(channel) {
		return ""
	}
	return Conversation(workspace, channel) + event.ThreadKey(":"+ts)
}

// ParseThreadKey parses a key made by ThreadKey. The root is empty for a direct or
// group conversation and for a command's thread, because neither has a root message for
// replies.
func ParseThreadKey(key event.ThreadKey) (channel, root string, err error) {
	parts := strings.Split(string(key), ":")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != string(event.Slack) || !IsID(parts[2]) {
		return "", "", fmt.Errorf("thread key %q: must be slack:<workspace>:<channel> or slack:<workspace>:<channel>:<root ts or command>", key)
	}
	if len(parts) == 4 {
		root = parts[3]
		if id, isCommand := strings.CutPrefix(root, CommandPrefix); isCommand && IsID(id) {
			return parts[2], "", nil
		}
		if !IsTimestamp(root) {
			return "", "", fmt.Errorf("thread key %q: the root %q is not a Slack timestamp", key, root)
		}
	}
	return parts[2], root, nil
}

// CommandPrefix begins the ts of a command.
const CommandPrefix = "command-"

// IsCommandThread reports whether a valid key belongs to a command's thread.
func IsCommandThread(key event.ThreadKey) bool {
	return strings.Contains(string(key), ":"+CommandPrefix)
}

// Address returns the address of replies in a thread, see [adapters.Sender]. For a thread under a
// message, its Place is the root's ts. For the answer to a command outside such threads, it is
// "command-<id>". For the answer to a post of ours there, such as that of an injected message, it is the post's ts.
func Address(thread event.ThreadKey, answered string) (adapters.Address, error) {
	channel, root, err := ParseThreadKey(thread)
	if _, id, _ := strings.Cut(answered, "/"); root == "" && (strings.HasPrefix(id, CommandPrefix) || IsCommandThread(thread) && IsTimestamp(id)) {
		root = id
	}
	return adapters.Address{Channel: channel, Place: root}, err
}

// Beside returns the channel itself if the answered message is the root of the thread, or a shortcut. A command stays in the
// address, because its response URL may have to take the post.
func Beside(to adapters.Address, answered string) adapters.Address {
	isCommand := strings.HasPrefix(to.Place, CommandPrefix)
	if answered == MessageID(to.Channel, to.Place) && !isCommand || strings.HasPrefix(answered, MessageID(to.Channel, "shortcut-")) {
		to.Place = beside
	}
	return to
}

// beside is the Place of an answer in the channel, next to its question.
const beside = "beside"

// IsBeside reports whether a destination is beside the answered message, where Slack has no status.
func IsBeside(to adapters.Address) bool { return to.Place == beside }

// ThreadTS returns the thread_ts of a destination; empty for the top level of its channel, where the
// answer to a command goes.
func ThreadTS(to adapters.Address) string {
	if strings.HasPrefix(to.Place, CommandPrefix) || IsBeside(to) {
		return ""
	}
	return to.Place
}

// ChannelOf returns a channel with its type in the terms of Slack's events; without one, with the type
// that its id has by default.
func ChannelOf(id, kind string) event.Channel {
	return withDefaultType((&Payload{channel: id, channelType: kind}).namedChannel())
}

// withDefaultType sets a channel's unknown type by the channel's id.
func withDefaultType(channel event.Channel) event.Channel {
	if channel.Type == event.ChannelUnknown {
		channel.Type = event.ChannelRoom
		if IsDirect(channel.ID) {
			channel.Type = event.ChannelDirect
		}
	}
	return channel
}

// IsDirect reports whether a channel's id belongs to a direct message.
func IsDirect(channel string) bool { return strings.HasPrefix(channel, "D") }
