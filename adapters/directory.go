package adapters

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrNoUser means that the platform knows no name of a user.
var ErrNoUser = errors.New("the platform does not know the user")

// Namer is an adapter that can look up a user on its platform.
type Namer interface {
	// LookupUser returns a user's name. It fails with ErrNoUser if the platform answers that
	// it has none.
	LookupUser(ctx context.Context, id string) (User, error)
}

const (
	// lookupTimeout bounds how long a message waits for a name.
	lookupTimeout = time.Second
	// nameTTL is the lifetime of a cached name.
	nameTTL = time.Hour
	// absentTTL is the lifetime of the answer that a platform has no name.
	absentTTL = time.Minute
	// nameLimit bounds each generation of cached names.
	nameLimit = 10_000
)

// Names looks up names on a platform and caches the answers for a while. It does not cache
// failures. It is safe for concurrent use.
type Names struct {
	namer Namer
	mu    sync.Mutex
	// newer and old are the two generations of a bounded cache. When the newer one is
	// full, it replaces the old one, so names without a recent lookup are dropped.
	newer, old map[string]cachedUser
}

type cachedUser struct {
	user  User
	known bool
	until time.Time
}

// NewNames returns the names that namer knows; a nil namer knows none.
func NewNames(namer Namer) *Names { return &Names{namer: namer} }

// User returns a user's name, or false if the name is not known in time.
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
	if !time.Now().Before(r.until) {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		user, err := n.namer.LookupUser(ctx, id)
		switch {
		case err == nil:
			r = cachedUser{user, true, time.Now().Add(nameTTL)}
		case errors.Is(err, ErrNoUser):
			r = cachedUser{until: time.Now().Add(absentTTL)}
		default:
			return user, false
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newer == nil || len(n.newer) >= nameLimit {
		n.old, n.newer = n.newer, map[string]cachedUser{}
	}
	n.newer[id] = r
	return r.user, r.known
}
