package memory

import (
	"sync"
	"time"

	"parley/adapters/discord/payload"
)

const (
	// maxCovered bounds the channels whose coverage is remembered.
	maxCovered = 10_000
	// HistoryLag is the time after which the history shows every message, and the gateway has named
	// every server of a new session.
	HistoryLag = 5 * time.Second
	// disorder bounds the time by which the messages of a channel arrive out of the order of
	// their ids.
	disorder = time.Second
	// breakLag is how far a read must reach beyond the last break to find all that is missing,
	// because Discord's clock may differ from ours.
	breakLag = time.Minute
)

// Coverage remembers by channel which messages this process has accepted, so that backfill reads
// only the others. The zero value knows none.
type Coverage struct {
	mu       sync.Mutex
	channels map[string]*covered
	breaks   int       // the sessions that have begun or ended
	broken   time.Time // when the last one did
}

// covered is the coverage of a channel. Messages of a time without a session may be missing
// behind upTo if broken is set.
type covered struct {
	upTo        string // every message up to this one is accepted; empty: unknown
	broken      bool
	first, last string // of the messages of the present session if broken is set
}

// Missing are the bounds of the messages of a channel that may be missing.
type Missing struct {
	After, Before string // ids; empty for no bound
	breaks        int
}

// Heard notes that a message of the present session was accepted.
func (c *Coverage) Heard(channel, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.channel(channel)
	if !known.broken {
		known.upTo = payload.Later(known.upTo, id)
		return
	}
	known.last = payload.Later(known.last, id)
	if known.first == "" || payload.CompareIDs(id, known.first) < 0 {
		known.first = id
	}
}

// Broke notes that a session has begun or ended: messages may be missing in every channel.
func (c *Coverage) Broke(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breaks, c.broken = c.breaks+1, now
	for _, known := range c.channels {
		*known = covered{upTo: known.upTo, broken: true}
	}
}

// Missing returns the bounds of a channel's missing messages.
func (c *Coverage) Missing(channel string) Missing {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := Missing{breaks: c.breaks}
	known := c.channels[channel]
	if known == nil {
		return m
	}
	if known.upTo != "" {
		m.After = payload.IDAt(payload.TimeOf(known.upTo).Add(-disorder))
	}
	if known.first != "" {
		m.Before = payload.IDAt(payload.TimeOf(known.first).Add(disorder))
	}
	return m
}

// Filled notes that the missing messages of a channel up to a time are accepted. begun is when the
// read began, and newest is the newest message; empty for none. Of the messages that the read has seen,
// only those count that every read shows: Discord may show an older one later than a newer one, as our
// own post, and the session may have ended unnoticed. Soon after a break, messages may be missing
// that the present session did not send.
func (c *Coverage) Filled(channel string, m Missing, begun, until time.Time, newest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.breaks != m.breaks || until.Before(c.broken.Add(breakLag)) { // others may be missing
		return
	}
	if shown := payload.IDAt(begun.Add(-HistoryLag)); payload.CompareIDs(newest, shown) > 0 {
		newest = shown
	}
	known := c.channel(channel)
	if begun.Before(c.broken.Add(HistoryLag)) {
		known.upTo = payload.Later(known.upTo, newest)
		return
	}
	if upTo := payload.Later(payload.Later(known.upTo, known.last), newest); upTo != "" {
		*known = covered{upTo: upTo}
	}
}

// channel returns the coverage of a channel.
func (c *Coverage) channel(id string) *covered {
	known := c.channels[id]
	if known == nil {
		if c.channels == nil || len(c.channels) >= maxCovered {
			c.channels = map[string]*covered{}
		}
		known = &covered{broken: true}
		c.channels[id] = known
	}
	return known
}
