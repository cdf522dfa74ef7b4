package bridge

import (
	"net/url"
	"strings"

	"parley/ingest/event"
)

// threadKey returns the key of a thread of a channel; an empty thread is the channel itself.
func threadKey(workspace, channel, thread string) event.ThreadKey {
	key := string(event.Bridge) + ":" + workspace + ":" + url.QueryEscape(channel)
	if thread != "" {
		key += ":" + url.QueryEscape(thread)
	}
	return event.ThreadKey(key)
}

// readThread is the reverse of threadKey. It returns false for the key of another thread.
func readThread(workspace string, key event.ThreadKey) (channel, thread string, ok bool) {
	rest, ok := strings.CutPrefix(string(key), string(event.Bridge)+":"+workspace+":")
	channel, thread, _ = strings.Cut(rest, ":")
	channel, err := url.QueryUnescape(channel)
	thread, bad := url.QueryUnescape(thread)
	return channel, thread, ok && err == nil && bad == nil && isName(channel, maxID) && (thread == "" || isName(thread, maxID))
}

// ids begins the external ids of messages, so that none has a form of Parley's own ids.
const ids = string(event.Bridge) + "/"

// external returns the external id of a message or a post, by the program's id; empty for none.
func external(id string) string {
	if id == "" {
		return ""
	}
	return ids + id
}

// internal is the reverse of external. It returns "" for a message that the program does not know.
func internal(external string) string {
	id, ok := strings.CutPrefix(external, ids)
	if !ok {
		return ""
	}
	return id
}

// senderID returns the sender_id of a person or a bot, by the program's id. The workspace is a part of it, because each program
// knows only its own people.
func senderID(workspace, id string) string { return string(event.Bridge) + ":" + workspace + "/" + id }
