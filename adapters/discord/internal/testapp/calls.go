package testapp

import (
	"slices"
	"sync"

	"parley/adapters/discord/discordtest"
)

// Calls records the calls of a fake. They may come concurrently.
type Calls struct {
	mu  sync.Mutex
	all []discordtest.Call
}

// Note records a call.
func (c *Calls) Note(call discordtest.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, call)
}

// Of returns the calls of a route.
func (c *Calls) Of(route string) []discordtest.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.all), func(call discordtest.Call) bool { return call.Route != route })
}

// Last returns the last call.
func (c *Calls) Last() discordtest.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[len(c.all)-1]
}
