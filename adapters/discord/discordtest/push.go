package discordtest

import (
	"context"
	"fmt"
)

// Event is an event that was sent to a session. The zero value was sent to none.
type Event struct {
	server  *Server
	session *session
	seq     int64
}

// Acked waits until the client confirms the event: with the sequence of a heartbeat, or of a
// resume. It returns false when the session has no connection.
func (e Event) Acked(ctx context.Context) (acked bool, err error) {
	if e.session == nil {
		return false, nil
	}
	err = e.server.await(ctx, func() bool {
		acked = e.session.acked >= e.seq
		return acked || e.session.conn == nil
	})
	return acked, err
}

// dispatch sends an event about a guild to its shard, or about direct messages to the first, if
// the session has the event's intent. The caller holds the lock.
func (s *Server) dispatch(guild, name string, d any) (e Event) {
	for _, session := range s.sessions {
		if intent := intentOf(guild, name); shardOf(guild, session.shards) == session.shard && session.intents&intent == intent {
			e = Event{s, session, session.dispatch(name, d)}
		}
	}
	return e
}

// PushRaw sends bytes unchanged to every session, as a frame with a sequence.
func (s *Server) PushRaw(raw []byte) (e Event) {
	s.change(func() {
		for _, session := range s.sessions {
			e = Event{s, session, session.push(func(int64) []byte { return raw })}
		}
	})
	return e
}

// Push sends an event about a guild.
func (s *Server) Push(guild, name string, d any) (e Event) {
	s.change(func() { e = s.dispatch(guild, name, d) })
	return e
}

// Kind is a way in which a connection ends or fails.
type Kind string

// The kinds of drops. After Clean, Cut, Zombie, Reconnect and InvalidTrue the session can be
// resumed; after InvalidFalse and Forget it cannot.
const (
	Clean        Kind = "clean"         // closed with 4000
	Cut          Kind = "cut"           // the connection breaks
	Zombie       Kind = "zombie"        // nothing is sent any more, heartbeats included
	Reconnect    Kind = "reconnect"     // op 7
	InvalidTrue  Kind = "invalid true"  // op 9 true
	InvalidFalse Kind = "invalid false" // op 9 false
	Forget       Kind = "forget"        // cut, and the next resume is refused
)

// Kinds returns all kinds of drops.
func Kinds() []Kind { return []Kind{Clean, Cut, Zombie, Reconnect, InvalidTrue, InvalidFalse, Forget} }

// Drop ends or breaks every connection, and returns their number.
func (s *Server) Drop(kind Kind) (dropped int) {
	s.change(func() {
		for c := range s.conns {
			if c.session == nil || c.session.conn != c {
				continue
			}
			dropped++
			s.drop(c, kind)
		}
	})
	return dropped
}

// CloseWith closes every connection with a close code. A session cannot be resumed after the
// codes for which Discord says so. CloseWith returns the number of connections.
func (s *Server) CloseWith(code int) (closed int) {
	s.change(func() {
		closed = len(s.conns)
		for c := range s.conns {
			if c.session != nil && (code == 4007 || code == 4009 || code == 4004 || code >= 4010) {
				delete(s.sessions, c.session.id)
			}
			c.close(code, fmt.Sprint("code ", code))
			if c.session != nil && c.session.conn == c {
				c.session.conn = nil
			}
		}
	})
	return closed
}

// drop drops one connection. The caller holds the lock.
func (s *Server) drop(c *conn, kind Kind) {
	switch kind {
	case Clean:
		c.close(4000, "Unknown error.")
	case Cut:
		c.cut()
	case Zombie:
		c.mu.Lock()
		c.zombie = true
		c.mu.Unlock()
	case Reconnect:
		c.send(encode(frame{Op: opReconnect, D: []byte("null")}))
	case InvalidTrue:
		c.send(encode(frame{Op: opInvalid, D: []byte("true")}))
	case InvalidFalse:
		delete(s.sessions, c.session.id)
		c.send(encode(frame{Op: opInvalid, D: []byte("false")}))
	case Forget:
		delete(s.sessions, c.session.id)
		c.cut()
	}
	if kind != Zombie {
		c.session.conn = nil
	}
}

// Starts returns the number of identifies and of resumes so far.
func (s *Server) Starts() (identifies, resumes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.identifies, s.resumes
}

// AwaitShards waits until n sessions are connected, and returns an error if ctx ends first.
func (s *Server) AwaitShards(ctx context.Context, n int) error {
	connected := 0
	err := s.await(ctx, func() bool {
		connected = 0
		for _, session := range s.sessions {
			if session.conn != nil {
				connected++
			}
		}
		return connected == n
	})
	if err != nil {
		return fmt.Errorf("%d of %d shards are connected: %w", connected, n, err)
	}
	return nil
}

// Await waits until the bot has made n posts, and returns those that are shown. If ctx ends
// first, it returns an error.
func (s *Server) Await(ctx context.Context, n int) ([]Message, error) {
	err := s.await(ctx, func() bool { return s.posted >= n })
	return s.Posts(""), err
}

// AwaitStarts waits until n identifies and resumes have succeeded or failed, and returns an error
// if ctx ends first.
func (s *Server) AwaitStarts(ctx context.Context, n int) error {
	if err := s.await(ctx, func() bool { return s.identifies+s.resumes >= n }); err != nil {
		return fmt.Errorf("await session %d: %w", n, err)
	}
	return nil
}
