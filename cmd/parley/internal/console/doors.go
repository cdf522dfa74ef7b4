package console

import (
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"parley/cmd/parley/internal/operator"
)

const (
	// ticketTime is how long a ticket admits somebody. A ticket admits once.
	ticketTime = time.Minute
	// sessionTime ends a session, and idleTime ends one that is not used.
	sessionTime = 12 * time.Hour
	idleTime    = time.Hour
	// maxEntries bounds the tickets, and the sessions, that are open at a time.
	maxEntries = 1000
)

// key is the SHA-256 of a ticket or of a session's secrets. The secrets themselves are not kept.
type key [sha256.Size]byte

func keyOf(secret string) key { return sha256.Sum256([]byte(secret)) }

// entry is what admits a request to a session: the secret of its cookie, and the place in its path. Neither
// does without the other.
type entry struct{ secret, place string }

func (e entry) key() key { return keyOf(e.secret + "/" + e.place) }

// ticket admits an operator once.
type ticket struct {
	caller operator.Caller
	end    time.Time
}

// session is one login.
type session struct {
	caller     operator.Caller
	made, used time.Time
	said       *said // the result of an operation that no page has shown yet
}

// doors hold the tickets and sessions of this process. Nobody stays logged in over a restart.
type doors struct {
	now func() time.Time
	// known reports whether an operator still has the same role. If not, the operator's sessions end.
	known func(operator.Caller) bool

	mu       sync.Mutex
	tickets  map[key]ticket
	sessions map[key]session
}

func newDoors(now func() time.Time, known func(operator.Caller) bool) *doors {
	return &doors{now: now, known: known, tickets: map[key]ticket{}, sessions: map[key]session{}}
}

// issue returns a new ticket for an operator.
func (d *doors) issue(caller operator.Caller) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	made := rand.Text()
	if len(d.tickets) < maxEntries {
		d.tickets[keyOf(made)] = ticket{caller: caller, end: d.now().Add(ticketTime)}
	}
	return made
}

// redeem returns the operator of a ticket, and uses the ticket up; false if it is not valid.
func (d *doors) redeem(secret string) (operator.Caller, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, ok := d.tickets[keyOf(secret)]
	delete(d.tickets, keyOf(secret))
	return t.caller, ok && d.now().Before(t.end)
}

// open begins a session and returns its entry. If there are too many, the one that was not used
// for the longest time ends.
func (d *doors) open(caller operator.Caller) entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	for len(d.sessions) >= maxEntries {
		var oldest key
		for k, s := range d.sessions {
			if o, ok := d.sessions[oldest]; !ok || s.used.Before(o.used) {
				oldest = k
			}
		}
		delete(d.sessions, oldest)
	}
	at, now := entry{rand.Text(), rand.Text()}, d.now()
	d.sessions[at.key()] = session{caller: caller, made: now, used: now}
	return at
}

// use returns the operator of a session, whose idle time begins again; false if the session has
// ended.
func (d *doors) use(at entry) (operator.Caller, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.sessions[at.key()]
	if !ok || d.ended(s) {
		delete(d.sessions, at.key())
		return operator.Caller{}, false
	}
	s.used = d.now()
	d.sessions[at.key()] = s
	return s.caller, true
}

// say keeps the result of an operation for the next page of a session.
func (d *doors) say(at entry, result said) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.sessions[at.key()]; ok {
		s.said = &result
		d.sessions[at.key()] = s
	}
}

// hear returns the result of an operation that no page has shown yet; nil for none.
func (d *doors) hear(at entry) *said {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[at.key()]
	if result := s.said; result != nil {
		s.said = nil
		d.sessions[at.key()] = s
		return result
	}
	return nil
}

// isOpen reports whether a session has not ended. A page that is only followed does not count as use.
func (d *doors) isOpen(at entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.sessions[at.key()]
	return ok && !d.ended(s)
}

// close ends a session.
func (d *doors) close(at entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, at.key())
}

func (d *doors) ended(s session) bool {
	now := d.now()
	return now.Sub(s.made) >= sessionTime || now.Sub(s.used) >= idleTime || !d.known(s.caller)
}

// sweep removes what has ended.
func (d *doors) sweep() {
	maps.DeleteFunc(d.tickets, func(_ key, t ticket) bool { return !d.now().Before(t.end) })
	maps.DeleteFunc(d.sessions, func(_ key, s session) bool { return d.ended(s) })
}
