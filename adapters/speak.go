package adapters

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"parley/ingest/event"
)

// Speech is a message that a program posts without a question before it.
type Speech struct {
	Workspace string
	To        Target
	Text      string // Markdown
	// Files name stored copies.
	Files []event.Attachment
	// By names the program, and Key its request: the same key of the same program is one post. An empty key is a
	// new post.
	By, Key string
	// Mentions are the tokens of the text that take effect; none else does.
	Mentions []string
	// Buttons are shown below the text, if the platform has buttons.
	Buttons []Button
	// May returns the error of a program that may not speak in a channel; nil for one that may speak in each.
	May func(channel string) error
}

// Target is a place to speak in. One of its fields is set.
type Target struct {
	Channel string `json:"channel,omitempty"`   // the platform's id of a channel
	User    string `json:"user,omitempty"`      // the platform's id of a person
	Thread  string `json:"thread_id,omitempty"` // the UUID of a thread
}

// Read reads a target from JSON, and returns the words of its fault; empty for none. Check finds the other faults.
func (t *Target) Read(raw json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if decoder.Decode(t) != nil {
		return "must be an object with one of channel, user and thread_id"
	}
	t.Thread = strings.ToLower(t.Thread)
	return ""
}

// Check returns the faults of a target.
func (t Target) Check() (faults event.FieldErrors) {
	n := 0
	for _, id := range []string{t.Channel, t.User, t.Thread} {
		if id != "" {
			n++
		}
	}
	faults.Check(n == 1, "to", "must have one of channel, user and thread_id")
	faults.Check(t.Thread == "" || uuid.Validate(t.Thread) == nil, "to.thread_id", "must be the UUID of a thread")
	return faults
}

// Reaction is an emoji that a program adds to a message in Parley's name.
type Reaction struct {
	Workspace string
	Message   string // its UUID
	Emoji     string // itself, or a name of it
	// May returns the error of a program that may not speak in a channel.
	May func(channel string) error
}

// Reactor is a Sender that can react to messages.
type Reactor interface {
	// Emoji returns the platform's form of an emoji, which is given as itself, or by a name with or without colons. It is false
	// if the platform has no such reaction. The form has no space. Pure.
	Emoji(given string) (emoji string, ok bool)
	// React adds the reaction sign.Text, as Emoji returned it, to sign.Message. It is no error if we have reacted so already. It may
	// be called again after any failure. Its errors are *SendError.
	React(ctx context.Context, sign Sign) error
}

// Location is the place of a message that a program puts into a workspace.
type Location struct {
	Platform event.Platform
	Thread   event.ThreadKey
	Channel  event.Channel // its type is unknown unless it is certainly direct
	// ReplyTo, OpenedOn and FollowUp are those of a message in the thread; see event.Injected.
	ReplyTo, OpenedOn string
	FollowUp          bool
	// New says that the thread begins with the message.
	New bool
}

// DirectOpener is a Sender that can write to a person first.
type DirectOpener interface {
	// OpenDirect opens the direct conversation with a user, or finds it, and returns its channel. It may be
	// called again after any failure. Its errors are *SendError; Permanent means that there is none.
	OpenDirect(ctx context.Context, user string) (channel string, err error)
}

// Linker is an adapter whose posts have links.
type Linker interface {
	// Link returns the address at which people see a post, by the address of its thread and its external id; empty if
	// it has none, or if the platform does not answer.
	Link(ctx context.Context, to Address, id string) string
}

// Spot is where a schedule asks an agent.
type Spot struct {
	Platform event.Platform
	// Thread is the key of the thread of the question. It is empty if each question has a thread of its own, whose
	// answer begins another thread at the top of the channel.
	Thread  event.ThreadKey
	Channel string // the platform's id
	Agent   string // of the channel
}
