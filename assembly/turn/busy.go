package turn

import (
	"sync"

	"parley/ingest/journal"
	"parley/ingest/work"
)

// busy counts the turns that this node works on, by workspace.
type busy struct {
	mu    sync.Mutex
	turns map[string]int
}

// room takes room for one more turn of a workspace. It returns false if there is none: the turn
// waits in the store, and the agent's workers are free for other workspaces.
func (r *Runner) room(workspace, agent string) (leave func(), ok bool) {
	r.busy.mu.Lock()
	defer r.busy.mu.Unlock()
	if r.isFull(workspace) {
		return nil, false
	}
	r.busy.turns[workspace]++
	return func() {
		r.busy.mu.Lock()
		full := r.isFull(workspace)
		r.busy.turns[workspace]--
		r.busy.mu.Unlock()
		if full { // turns of other agents begin when their queues look again, within a second
			r.Work.WakeAt(work.Turns, agent, r.Now())
		}
	}, true
}

// isFull reports whether a workspace has as many turns as it may. The caller holds the lock.
func (r *Runner) isFull(workspace string) bool {
	most := r.Settings(&journal.Run{Workspace: workspace}).MaxConcurrent
	return most > 0 && r.busy.turns[workspace] >= most
}

// full returns the workspaces without room.
func (r *Runner) full() (list []string) {
	r.busy.mu.Lock()
	defer r.busy.mu.Unlock()
	for workspace := range r.busy.turns {
		if r.isFull(workspace) {
			list = append(list, workspace)
		}
	}
	return list
}
