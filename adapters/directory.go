package adapters

import (
	"context"
	"sync"
	"time"
)

// Namer is an adapter that can ask its platform for a name.
type Namer interface {
	LookupUser(ctx context.Context, id string) (User, error)
	LookupChannel(ctx context.Context, id string) (name string, err error)
}

const (
	// lookupTimeout is how long a message waits for a name.
	lookupTimeout = time.Second
	// nameTTL is how long a name is believed.
	nameTTL = time.Hour
	// nameLimit bounds each generation of remembered names.
	nameLimit = 10_000
)

// Names asks a platform for names and remembers the answers for a while. What
// could not be answered is not remembered. It is safe for concurrent use.
type Names struct {
	namer    Namer
	users    memory[User]
	channels memory[string]
}

// NewNames returns the names that namer knows; a nil namer knows none.
func NewNames(namer Namer) *Names { return &Names{namer: namer} }

// User returns a user's name; false where nobody can tell it in time.
func (n *Names) User(ctx context.Context, id string) (User, bool) {
	if n.namer == nil {
		return User{}, false
	}
	return n.users.get(ctx, id, n.namer.LookupUser)
}

// ChannelName returns a channel's name; false where nobody can tell it in time.
func (n *Names) ChannelName(ctx context.Context, id string) (string, bool) {
	if n.namer == nil {
		return "", false
	}
	return n.channels.get(ctx, id, n.namer.LookupChannel)
}

// memory is a bounded cache: when the newer of its two generations is full, it
// becomes the older one, and what nobody asked for since is forgotten.
type memory[T any] struct {
	mu         sync.Mutex
	newer, old map[string]remembered[T]
}

type remembered[T any] struct {
	value T
	at    time.Time
}

func (m *memory[T]) get(ctx context.Context, id string, ask func(context.Context, string) (T, error)) (T, bool) {
	if value, ok := m.recall(id); ok {
		return value, true
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	value, err := ask(ctx, id)
	if err != nil {
		return value, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(id, remembered[T]{value, time.Now()})
	return value, true
}

func (m *memory[T]) recall(id string) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.newer[id]
	if !ok {
		if r, ok = m.old[id]; ok {
			m.put(id, r)
		}
	}
	return r.value, ok && time.Since(r.at) < nameTTL
}

func (m *memory[T]) put(id string, r remembered[T]) {
	if m.newer == nil || len(m.newer) >= nameLimit {
		m.old, m.newer = m.newer, map[string]remembered[T]{}
	}
	m.newer[id] = r
}
