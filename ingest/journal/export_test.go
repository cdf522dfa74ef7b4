package journal

import "context"

// QueueLimit is the bound of a lane's queue.
const QueueLimit = queueLimit

// Sweep is what Run does from time to time.
func (d *Desk) Sweep(ctx context.Context) { d.sweep(ctx) }

// Held is how many threads the desk holds.
func (d *Desk) Held() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.held)
}

// Queued is how many threads wait in memory for a worker of a lane.
func (d *Desk) Queued(work Work, agent string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.lanes[laneKey{work, agent}].queue)
}
