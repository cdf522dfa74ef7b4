package guard

// SetMaxConnections sets the number of connections at which the guard closes one for each
// new one.
func (g *Guard) SetMaxConnections(n int) {
	g.connections.mu.Lock()
	defer g.connections.mu.Unlock()
	g.connections.max = n
}

// SetMaxOfAddress sets the same number for the connections of one address.
func (g *Guard) SetMaxOfAddress(n int) {
	g.connections.mu.Lock()
	defer g.connections.mu.Unlock()
	g.connections.one = n
}

// Connections returns the number of open connections.
func (g *Guard) Connections() int {
	g.connections.mu.Lock()
	defer g.connections.mu.Unlock()
	return len(g.connections.places)
}

// Free returns the number of free bytes for bodies that are not verified.
func (g *Guard) Free() int {
	g.bodies.mu.Lock()
	defer g.bodies.mu.Unlock()
	return g.bodies.free
}

// Addresses returns the number of addresses whose failures are counted.
func (g *Guard) Addresses() int {
	g.failures.mu.Lock()
	defer g.failures.mu.Unlock()
	return len(g.failures.of)
}

// The bounds of a guard.
const (
	MaxUnverified = maxUnverified
	MaxAddresses  = maxAddresses
)
