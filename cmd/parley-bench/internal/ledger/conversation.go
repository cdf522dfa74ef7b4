package ledger

import (
	"fmt"
)

// Place is the address of a conversation on the platform.
type Place struct {
	Channel string
	Root    string // ts of the thread's first message; empty in a direct message
}

// Conversation is a place and the number of messages in it.
type Conversation struct {
	Place Place
	turns int
}

// DefaultChannels is the number of channels of a run that has no choice of its own.
const DefaultChannels = 50

// NewConversations returns the first n conversations of a run with the default channels.
func NewConversations(n int) []*Conversation { return NewRooms(0, n, DefaultChannels) }

// NewRooms returns n conversations of a run with so many channels, from the first on.
func NewRooms(first, n, channels int) []*Conversation {
	all := make([]*Conversation, n)
	for i := range all {
		all[i] = NewRoom(first+i, channels)
	}
	return all
}

// NewThread returns a new thread of the n-th channel.
func NewThread(n int) *Conversation {
	return &Conversation{Place: Place{Channel: fmt.Sprintf("C0ROOM%02d", n)}}
}

// NewRoom returns the n-th conversation of a run with so many channels. Every fourth
// conversation is a direct message, the others are threads.
func NewRoom(n, channels int) *Conversation {
	if n%4 == 3 {
		return &Conversation{Place: Place{Channel: fmt.Sprintf("D0DIRECT%d", n)}}
	}
	return NewThread((n - n/4) % channels)
}

// SetTS sets the message's ts. If the conversation is a thread without a root, the
// message becomes its root.
func (c *Conversation) SetTS(m *Message, ts string) {
	if c.Place.Root == "" && !m.Direct() {
		c.Place.Root = ts
	}
	m.TS, m.Place = ts, c.Place
}

// Users is the number of people who write messages.
const Users = 20

// User returns the id of the writer of the nth message: the people take turns.
func User(n int) string { return fmt.Sprintf("U0HUMAN%02d", n%Users) }
