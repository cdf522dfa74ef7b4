package figures

import (
	"sync"
	"time"

	"parley/assembly/turn"
	"parley/cmd/parley/internal/operator"
)

// health is how the agents do on this node. The zero value has none that was asked.
type health struct {
	mu     sync.Mutex
	agents map[string]*operator.AgentHealth // by id
}

// of returns how an agent does.
func (h *health) of(id string) operator.AgentHealth {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.agents[id]; known != nil {
		return *known
	}
	return operator.AgentHealth{}
}

// attempted takes the end of an attempt. It reports whether the agent began to fail with it, or works
// again after that.
func (h *health) attempted(id string, r turn.Report, now time.Time) (began, recovered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.agents[id]
	if known == nil {
		if h.agents == nil {
			h.agents = map[string]*operator.AgentHealth{}
		}
		known = new(operator.AgentHealth)
		h.agents[id] = known
	}
	switch r.Outcome {
	case turn.Failed, turn.Retried:
		began = !known.Failing
		known.Failing, known.LastError = true, r.Err.Error()
	case turn.Answered, turn.Rerun, turn.Dropped, turn.Quiet, turn.Awaited:
		recovered = known.Failing
		known.Failing = false
		known.FirstToken = r.FirstToken
	}
	if began || recovered || known.Since.IsZero() {
		known.Since = now
	}
	return began, recovered
}
