package queue

import "sync"

// Calls counts the calls that are under way on an engine, and admits none once it
// is closed. The zero value is open.
type Calls struct {
	mu     sync.RWMutex // guards closed against calls that begin
	closed bool
	going  sync.WaitGroup
}

// Enter counts a call, which Leave ends; false where there is none any more.
func (c *Calls) Enter() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return false
	}
	c.going.Add(1)
	return true
}

// Leave ends a call.
func (c *Calls) Leave() { c.going.Done() }

// Close admits no further call; false where that was done before.
func (c *Calls) Close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.closed
	c.closed = true
	return first
}

// Wait returns when no call is under way. Close comes first.
func (c *Calls) Wait() { c.going.Wait() }
