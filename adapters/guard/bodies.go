package guard

import (
	"container/list"
	"sync"
)

// maxUnverified bounds all bodies of callers that are not authenticated yet, in bytes.
const maxUnverified = 32 << 20

// bodies is the memory of the bodies whose callers are not authenticated yet.
type bodies struct {
	mu         sync.Mutex
	changed    sync.Cond
	free       int       // bytes
	closing    int       // bytes that closed bodies will soon release
	incomplete list.List // of *body, the oldest first
}

// body is the part of the memory that one body has reserved.
type body struct {
	bodies  *bodies
	size    int
	end     func()        // ends the reading; it does not wait
	element *list.Element // nil before the first bytes
	closed  bool
}

// reserve reserves n more bytes. If they are not free, it closes the oldest incomplete bodies,
// and waits until these, or bodies that are being verified, have released theirs. It returns
// false if b itself was closed, which happens only after b had some bytes.
func (b *body) reserve(n int) bool {
	s := b.bodies
	s.mu.Lock()
	defer s.mu.Unlock()
	for !b.closed && s.free < n {
		oldest := s.incomplete.Front()
		if s.free+s.closing >= n || oldest == nil || oldest == b.element && s.incomplete.Len() == 1 {
			s.changed.Wait()
			continue
		}
		oldest.Value.(*body).close()
	}
	if b.closed {
		return false
	}
	if b.element == nil {
		b.element = s.incomplete.PushBack(b)
	}
	s.free -= n
	b.size += n
	return true
}

// close ends the reading of b. The caller holds the lock.
func (b *body) close() {
	b.closed = true
	b.bodies.closing += b.size
	b.bodies.incomplete.Remove(b.element)
	b.end()
	b.bodies.changed.Broadcast() // b may wait in reserve
}

// complete ends the time in which b can be closed. It returns false if b was closed before.
func (b *body) complete() bool {
	b.bodies.mu.Lock()
	defer b.bodies.mu.Unlock()
	if b.closed {
		return false
	}
	b.bodies.incomplete.Remove(b.element)
	return true
}

// release releases the bytes of a body.
func (b *body) release() {
	s := b.bodies
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.element != nil {
		s.incomplete.Remove(b.element) // still there after a panic
	}
	s.free += b.size
	if b.closed {
		s.closing -= b.size
	}
	s.changed.Broadcast()
}
