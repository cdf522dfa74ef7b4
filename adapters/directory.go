package adapters

import (
	"context"
	"sync"
	"time"
)

// Namer is an adapter that can ask its platform for a user.
type Namer interface {
	LookupUser(ctx context.Context, id string) (User, error)
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
	namer Namer
	mu    sync.Mutex
	// newer and old are the two generations of a bounded cache: when the newer one is
	// full, it becomes the older one, and what nobody asked for since is forgotten.
	newer, old map[string]remembered
}

type remembered struct {
	user User
	at   time.Time
}

// NewNames returns the names that namer knows; a nil namer knows none.
func NewNames(namer Namer) *Names { return &Names{namer: namer} }

// User returns a user's name; false where nobody can tell it in time.
func (n *Names) User(ctx context.Context, id string) (User, bool) {
	if n.namer == nil {
		return User{}, false
	}
	n.mu.Lock()
	r, ok := n.newer[id]
	if !ok {
		r = n.old[id]
	}
	n.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= nameTTL {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		user, err := n.namer.LookupUser(ctx, id)
		if err != nil {
			return user, false
		}
		r = remembered{user, time.Now()}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newer == nil || len(n.newer) >= nameLimit {
		n.old, n.newer = n.newer, map[string]remembered{}
	}
	n.newer[id] = r
	return r.user, true
}
