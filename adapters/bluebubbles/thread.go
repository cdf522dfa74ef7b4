package bluebubbles

import (
	"strings"

	"parley/ingest/event"
)

// ThreadKey names the conversation of a chat: "bluebubbles:<workspace>:<name>",
// the name being what follows the last semicolon of the chat's guid, in lower
// case where it is an e-mail address. So "iMessage;-;x", "any;-;x", "SMS;-;x"
// and a bare "x" are one conversation, whatever service a message came by.
func ThreadKey(workspace, chat string) event.ThreadKey {
	return event.ThreadKey(string(event.BlueBubbles) + ":" + workspace + ":" + chatName(chat))
}

// chatName is what a chat is called without the service it goes by.
func chatName(chat string) string {
	name := chat[strings.LastIndexByte(chat, ';')+1:]
	if strings.ContainsRune(name, '@') {
		return strings.ToLower(name)
	}
	return name
}

// The styles of a chat, as Messages stores them.
const (
	styleGroup  = 43
	styleDirect = 45
)

// chat is the conversation that a message says it belongs to.
type chat struct {
	guid  string
	style int64 // 0 where the payload tells none
}

// channel is the chat as the platform knows it; its id is the guid as it came,
// since that is what sending needs. The style decides what it is, then the
// guid's separator: ";+;" stands in the guid of a group.
func (c chat) channel() event.Channel {
	group := strings.Contains(c.guid, ";+;")
	switch c.style {
	case styleGroup:
		group = true
	case styleDirect:
		group = false
	}
	if group {
		return event.Channel{ID: c.guid, Type: event.ChannelRoom}
	}
	return event.Channel{ID: c.guid, Type: event.ChannelDirect}
}

// isWith says whether the chat is the one with address.
func (c chat) isWith(address string) bool {
	return address != "" && chatName(c.guid) == chatName(address)
}
