package adapters

import (
	"context"
	"errors"
	"sync"
	"time"
)

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
// failures, but rests while the platform hangs. It is safe for concurrent use.
type Names struct {
	namer Namer
	mu    sync.Mutex
	// newer and old are the two generations of a bounded cache. When the newer one is
	// full, it replaces the old one, so names without a recent lookup are dropped.
	newer, old map[string]cachedUser
	rest       Rest
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
	return n.find(ctx, id, func(ctx context.Context) (User, error) { return n.namer.LookupUser(ctx, id) })
}

// Mention returns the name behind a token of a group or a channel, or false; see MentionNamer.
func (n *Names) Mention(ctx context.Context, in, token string) (string, bool) {
	namer, ok := n.namer.(MentionNamer)
	if !ok {
		return "", false
	}
	found, known := n.find(ctx, in+token, func(ctx context.Context) (User, error) {
		name, err := namer.LookupMention(ctx, in, token)
		return User{DisplayName: name}, err
	})
	return found.DisplayName, known
}

// find returns what is cached under a key, or else what lookup returns in time.
func (n *Names) find(ctx context.Context, key string, lookup func(context.Context) (User, error)) (User, bool) {
	n.mu.Lock()
	r, ok := n.newer[key]
	if !ok {
		r = n.old[key]
	}
	n.mu.Unlock()
	if !time.Now().Before(r.until) {
		if n.rest.Now() {
			return User{}, false
		}
		asked, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		user, err := lookup(asked)
		n.rest.Note(ctx, err)
		switch {
		case err == nil:
			r = cachedUser{user, true, time.Now().Add(nameTTL)}
		case errors.Is(err, ErrNoName):
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
	n.newer[key] = r
	return r.user, r.known
}

// Viewer is an adapter that knows who can read a channel.
type Viewer interface {
	// Sees reports whether a user can read a channel of the workspace now. An error says that it is not known.
	Sees(ctx context.Context, channel, user string) (bool, error)
}
