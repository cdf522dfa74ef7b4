package queue

import (
	"sync"

	"parley/ingest/journal/storage"
)

// Calls counts the running calls of an engine, and admits none after it is closed. The
// zero value is open.
type Calls struct {
	mu     sync.RWMutex // guards closed against new calls
	closed bool
	going  sync.WaitGroup
}

// Do runs a call, or returns storage.ErrClosed.
func (c *Calls) Do(call func() error) error {
	c.mu.RLock()
	if c.closed {
		c.mu.RUnlock()
		return storage.ErrClosed
	}
	c.going.Add(1)
	c.mu.RUnlock()
	defer c.going.Done()
	return call()
}

// Close refuses all further calls. It returns false if it was called before.
func (c *Calls) Close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.closed
	c.closed = true
	return first
}

// Wait returns when no call is running. The caller calls Close first.
func (c *Calls) Wait() { c.going.Wait() }
