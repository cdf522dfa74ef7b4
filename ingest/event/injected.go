package event

import "strings"

// Injected is a message that a program puts into a thread in the name of somebody whom the platform does not know. It is
// the body of an envelope with the transport ByProgram, so that any node can record it.
type Injected struct {
	ID              string    `json:"id"` // see InjectedID
	ClientMessageID string    `json:"client_message_id,omitempty"`
	Thread          ThreadKey `json:"thread"`
	Channel         string    `json:"channel"`
	Parent          string    `json:"parent,omitempty"` // of the channel
	// Direct says that the channel is a direct conversation. If it is not set, what payloads have told about the channel counts.
	Direct bool `json:"direct,omitempty"`
	// ReplyTo is the external id of the message that each message of the thread answers, and FollowUp says that the thread
	// is one of a room; both as in Message.
	ReplyTo  string         `json:"reply_to,omitempty"`
	OpenedOn string         `json:"opened_on,omitempty"` // as in Message
	FollowUp bool           `json:"follow_up,omitempty"`
	Content  string         `json:"content"`
	Metadata string         `json:"metadata"` // an object, byte for byte as it is stored
	Files    []InjectedFile `json:"files,omitempty"`
	Passive  bool           `json:"passive,omitempty"`
	// Mentioned is the program's word that the message addresses us.
	Mentioned bool `json:"mentioned,omitempty"`
	// Alone says that the message has a run of its own, because its program may not read the thread, and gets the answer.
	Alone bool `json:"alone,omitempty"`
	// Announce says that people are shown the message before its answer.
	Announce bool `json:"announce,omitempty"`
}

// InjectedFile is a file of an injected message, with the place of its stored copy.
type InjectedFile struct {
	Attachment
	At Copy `json:"at"`
}

// injected begins the external ids of injected messages. No platform has such an id.
const injected = "injected:"

// InjectedID returns the external id of a message that a program injects. by names the program, as workspace/token id, and
// id is unique to the message.
func InjectedID(by, id string) string { return injected + by + ":" + id }

// InjectedBy returns the program that has injected the message with an external id. It returns false for another message.
func InjectedBy(externalID string) (by string, ok bool) {
	rest, ok := strings.CutPrefix(externalID, injected)
	return rest[:max(strings.LastIndexByte(rest, ':'), 0)], ok
}

// copies begins the keys of the threads with the answers that go to programs. They have no messages.
const copies = "copies:"

// CopiesTo returns the key of the thread that has the answers to a program, as InjectedBy names it.
func CopiesTo(by string) ThreadKey { return ThreadKey(copies + by) }

// IsOfPlatform reports whether a thread is one of a platform: it is not that of a workstream or a tick, nor of the answers to
// a program.
func IsOfPlatform(thread ThreadKey) bool {
	return !IsWorkstream(thread) && !IsTick(thread) && !strings.HasPrefix(string(thread), copies)
}
