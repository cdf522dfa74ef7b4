package adapters

import (
	"context"
	"errors"
	"time"

	"parley/ingest/event"
)

const (
	// nameTTL is the lifetime of a cached name.
	nameTTL = time.Hour
	// absentTTL is the lifetime of the answer that a platform has no name.
	absentTTL = time.Minute
	// placeTTL is the lifetime of the cached names of a place, whose changes few platforms report.
	placeTTL = time.Minute
)

// Names looks up names on a platform and caches the answers for a while. It does not cache
// failures, but rests while the platform hangs. It is safe for concurrent use.
type Names struct {
	namer Namer
	kept  Kept[cachedName]
}

// cachedName is the answer about a user, a token or a place.
type cachedName struct {
	user  User
	place event.Place
	known bool
}

// NewNames returns the names that namer knows; a nil namer knows none.
func NewNames(namer Namer) *Names { return &Names{namer: namer} }

// User returns a user's name, or false if the name is not known in time.
func (n *Names) User(ctx context.Context, id string) (User, bool) {
	if n.namer == nil {
		return User{}, false
	}
	found := n.find(ctx, id, nameTTL, func(ctx context.Context) (c cachedName, err error) {
		c.user, err = n.namer.LookupUser(ctx, id)
		return c, err
	})
	return found.user, found.known
}

// Mention returns the name behind a token of a group or a channel, or false; see MentionNamer.
func (n *Names) Mention(ctx context.Context, in, token string) (string, bool) {
	namer, ok := n.namer.(MentionNamer)
	if !ok {
		return "", false
	}
	found := n.find(ctx, in+token, nameTTL, func(ctx context.Context) (c cachedName, err error) {
		c.user.DisplayName, err = namer.LookupMention(ctx, in, token)
		return c, err
	})
	return found.user.DisplayName, found.known
}

// Place returns the names of a channel's place, or false if they are not known in time; see PlaceNamer.
func (n *Names) Place(ctx context.Context, channel string) (event.Place, bool) {
	if keeper, ok := n.namer.(PlaceKeeper); ok {
		if place, known := keeper.KnownPlace(channel); known {
			return place, true
		}
	}
	namer, ok := n.namer.(PlaceNamer)
	if !ok {
		return event.Place{}, false
	}
	found := n.find(ctx, "in "+channel, placeTTL, func(ctx context.Context) (c cachedName, err error) {
		c.place, err = namer.LookupPlace(ctx, channel)
		return c, err
	})
	return found.place, found.known
}

// find returns what is cached under a key, or else what lookup returns in time, which is cached for ttl.
func (n *Names) find(ctx context.Context, key string, ttl time.Duration, lookup func(context.Context) (cachedName, error)) cachedName {
	found, _ := n.kept.Get(ctx, key, func(ctx context.Context) (cachedName, time.Duration, error) { // after an error the name is not known
		c, err := lookup(ctx)
		if errors.Is(err, ErrNoName) {
			return cachedName{}, absentTTL, nil
		}
		c.known = err == nil
		return c, ttl, err
	})
	return found
}
