package memory

import "parley/adapters"

// Memory is what one node remembers of a workspace. It is safe for concurrent use, except for State,
// which is set before the first use.
type Memory struct {
	Servers  *Servers
	Coverage Coverage
	Nonces   Nonces
	State    adapters.State // of the workspace, for all nodes
}

// New returns a memory of nothing.
func New() *Memory { return &Memory{Servers: newServers()} }
