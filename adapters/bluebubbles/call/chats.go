package call

import (
	"sync"
	"time"

	"parley/adapters/bluebubbles/payload"
)

// Chats are the guids by which the server knows chats, as messages had them. It is safe for concurrent
// use.
type Chats struct {
	mu    sync.Mutex
	guids map[string]seenGUID // by the chat's name
}

// seenGUID is a chat's guid in its newest message, and the date of that message.
type seenGUID struct {
	guid string
	at   time.Time
}

// Saw notes the guid that a chat has in a message of a date, unless a newer message was seen.
func (c *Chats) Saw(guid string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name := payload.ChatName(guid); !at.Before(c.guids[name].at) {
		c.guids[name] = seenGUID{guid, at}
	}
}

// GUID returns the guid that a chat has in its newest message; empty for none.
func (c *Chats) GUID(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.guids[name].guid
}
