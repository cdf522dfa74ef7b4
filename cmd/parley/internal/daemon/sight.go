package daemon

import (
	"context"
	"sync"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

const (
	// sightTime bounds the question to a platform whether a user can read a channel.
	sightTime = 5 * time.Second
	// sightAge is the time for which the answer is remembered, and maxSights the number of remembered answers.
	sightAge  = time.Minute
	maxSights = 10_000
)

// sights remembers who can read which channels.
type sights struct {
	mu    sync.Mutex
	known map[sightKey]sight
}

type sightKey struct{ workspace, channel, user string }

type sight struct {
	sees  bool
	until time.Time
}

// sees reports whether a user of a workspace's platform can read a channel there. It is false if that is not known.
func (d *Daemon) sees(ctx context.Context, workspace, channel, user string) bool {
	a := d.account(workspace)
	if a == nil {
		return false
	}
	viewer, ok := a.adapter.(adapters.Viewer)
	if !ok {
		return false
	}
	s, key := &d.sights, sightKey{workspace, channel, user}
	s.mu.Lock()
	known, ok := s.known[key]
	s.mu.Unlock()
	if ok && d.now().Before(known.until) {
		return known.sees
	}
	ctx, cancel := context.WithTimeout(ctx, sightTime)
	defer cancel()
	var err error
	func() {
		defer adapters.Recover(d.log, &err, "workspace", workspace)
		known.sees, err = viewer.Sees(ctx, channel, user)
	}()
	if err != nil {
		d.log.Debug("it is not known who can read a channel", "workspace", workspace, "channel", channel, "err", err)
		return false
	}
	known.until = d.now().Add(sightAge)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSights {
		s.known = map[sightKey]sight{}
	}
	s.known[key] = known
	return known.sees
}

// namespace returns the namespace of the sender ids of a platform.
func (d *Daemon) namespace(platform event.Platform) string { return d.platforms[platform].Namespace() }
