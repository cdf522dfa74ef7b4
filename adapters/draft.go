package adapters

import (
	"time"

	"parley/ingest/event"
)

// Draft is a message that somebody might write, so that an operator sees how it would be treated. Only a
// Text is needed; a platform has an example for each other field that is empty.
type Draft struct {
	Workspace string
	// Thread is a thread of the workspace that the message continues; empty for a new one. Channel is
	// its channel then.
	Thread  event.ThreadKey
	Channel string
	Type    event.ChannelType
	Server  string // to which the channel or the sender belongs
	// Sender is the id of the author, without a namespace, and Name the display name.
	Sender, Name string
	Text         string
	// Mentions says that the message begins with a mention of us, on a platform that has mentions.
	Mentions bool
	Self     event.Self
	At       time.Time
}
