package slack

import (
	"fmt"
	"strings"

	"parley/ingest/event"
)

// ThreadKey names the conversation that a message belongs to. In a channel that
// is the root message and its replies, "slack:<workspace>:<channel>:<root ts>",
// where a message outside a thread is its own root. A direct or group message
// outside a thread belongs to the conversation, "slack:<workspace>:<channel>",
// and so does a thread's root there, since it was said in the conversation
// before anybody answered it (Slack then shows it with thread_ts == ts); the
// replies are a thread of their own, named as in a channel.
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
// conversation of a direct or group message.
func parseThreadKey(key event.ThreadKey) (channel, root string, err error) {
	parts := strings.Split(string(key), ":")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != string(event.Slack) || !isID(parts[2]) {
		return "", "", fmt.Errorf("thread key %q: must be slack:<workspace>:<channel> or slack:<workspace>:<channel>:<root ts>", key)
	}
	if len(parts) == 4 {
		root = parts[3]
		if !isTimestamp(root) {
			return "", "", fmt.Errorf("thread key %q: the root %q is no Slack timestamp", key, root)
		}
	}
	return parts[2], root, nil
}

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
