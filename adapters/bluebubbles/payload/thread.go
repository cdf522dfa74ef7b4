package payload

import (
	"strings"

	"parley/ingest/event"
)

// ThreadKey returns the key of a chat's conversation, "bluebubbles:<workspace>:<name>". The
// name is the part of the chat's guid after the last semicolon, in lower case if it is an
// e-mail address. So "iMessage;-;x", "any;-;x", "SMS;-;x" and a bare "x" are one
// conversation, whichever service carried the message.
func ThreadKey(workspace, chat string) event.ThreadKey {
	return event.ThreadKey(string(event.BlueBubbles) + ":" + workspace + ":" + ChatName(chat))
}

// ChatName returns the part of a chat's guid that does not depend on the service. It is the id
// of the channel. A person's address is its own ChatName, except that an e-mail address is in
// lower case.
func ChatName(chat string) string {
	name := chat[strings.LastIndexByte(chat, ';')+1:]
	if strings.ContainsRune(name, '@') {
		return strings.ToLower(name)
	}
	return name
}

// ConfiguredID is the ChatName of an id that a person wrote: a telephone number may have separators.
func ConfiguredID(id string) string {
	name := ChatName(id)
	if number := separators.Replace(name); strings.Trim(number, "+0123456789") == "" {
		return number
	}
	return name
}

// separators removes what people write between the digits of a telephone number.
var separators = strings.NewReplacer(" ", "", "-", "", "(", "", ")", "", ".", "")

// The styles of a chat, as Messages stores them.
const (
	styleGroup  = 43
	styleDirect = 45
)

// Chat is the chat that a payload names.
type Chat struct {
	GUID  string
	name  string // of a group, as people see it; usually empty
	style int64  // 0 if the payload has none
}

// channel returns the chat as a channel. The style decides the type; without a style, the
// guid's separator does: a group's guid contains ";+;".
func (c Chat) channel() event.Channel {
	group := strings.Contains(c.GUID, ";+;")
	switch c.style {
	case styleGroup:
		group = true
	case styleDirect:
		group = false
	}
	if group {
		return event.Channel{ID: ChatName(c.GUID), Type: event.ChannelRoom}
	}
	return event.Channel{ID: ChatName(c.GUID), Type: event.ChannelDirect}
}

// isWith reports whether the chat is the one-to-one chat with address.
func (c Chat) isWith(address string) bool {
	return address != "" && ChatName(c.GUID) == ChatName(address)
}
