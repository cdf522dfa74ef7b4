package discord

import (
	"sync"
	"time"

	"parley/adapters/discord/payload"
)

const (
	// maxCovered bounds the channels whose coverage is remembered.
	maxCovered = 10_000
	// disorder bounds the time by which the messages of a channel arrive out of the order of
	// their ids.
	disorder = time.Second
	// breakLag is how far a read must reach beyond the last break to find all that is missing,
	// because Discord's clock may differ from ours.
	breakLag = time.Minute
)

// coverage remembers by channel which messages this process has accepted, so that backfill reads
// only the others. The zero value knows none.
type coverage struct {
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

// missing are the bounds of the messages of a channel that may be missing.
type missing struct {
	after, before string // ids; empty for no bound
	breaks        int
}

// heard notes that a message of the present session was accepted.
func (c *coverage) heard(channel, id string) {
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

// broke notes that a session has begun or ended: messages may be missing in every channel.
func (c *coverage) broke(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breaks, c.broken = c.breaks+1, now
	for _, known := range c.channels {
		*known = covered{upTo: known.upTo, broken: true}
	}
}

// missing returns the bounds of a channel's missing messages.
func (c *coverage) missing(channel string) missing {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := missing{breaks: c.breaks}
	known := c.channels[channel]
	if known == nil {
		return m
	}
	if known.upTo != "" {
		m.after = payload.IDAt(payload.TimeOf(known.upTo).Add(-disorder))
	}
	if known.first != "" {
		m.before = payload.IDAt(payload.TimeOf(known.first).Add(disorder))
	}
	return m
}

// filled notes that the missing messages of a channel up to a time are accepted. begun is when the
// read began, and newest is the newest message; empty for none. Soon after a break, only older
// messages count, because Discord may show the others later.
func (c *coverage) filled(channel string, m missing, begun, until time.Time, newest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.breaks != m.breaks || until.Before(c.broken.Add(breakLag)) { // others may be missing
		return
	}
	known := c.channel(channel)
	if shown := payload.IDAt(begun.Add(-historyLag)); begun.Before(c.broken.Add(historyLag)) {
		if payload.CompareIDs(newest, shown) > 0 {
			newest = shown
		}
		known.upTo = payload.Later(known.upTo, newest)
		return
	}
	if upTo := payload.Later(payload.Later(known.upTo, known.last), newest); upTo != "" {
		*known = covered{upTo: upTo}
	}
}

// channel returns the coverage of a channel.
func (c *coverage) channel(id string) *covered {
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
