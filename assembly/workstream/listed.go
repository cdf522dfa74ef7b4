package workstream

import (
	"time"

	"parley/ingest/journal/workstreams"
)

// Listed is a workstream as our API and our tools show it.
type Listed struct {
	ID          string            `json:"launch_id"`
	Run         string            `json:"run_id"`
	Agent       string            `json:"agent"`
	Name        string            `json:"name"`
	State       workstreams.State `json:"state"`
	Phase       workstreams.Phase `json:"phase"`
	Tool        string            `json:"tool"`
	Iteration   int64             `json:"iteration"`
	Message     string            `json:"message"`
	Elapsed     int64             `json:"deadline_elapsed"` // in percent
	LaunchedAt  time.Time         `json:"launched_at"`
	EndedAt     *time.Time        `json:"ended_at"`
	Summary     string            `json:"summary"`
	Error       string            `json:"error"`
	Interactive bool              `json:"interactive"`
}

// List returns workstreams for our API and our tools.
func List(children []workstreams.Workstream, now time.Time) []Listed {
	list := make([]Listed, len(children))
	for i := range children {
		w := &children[i]
		list[i] = Listed{
			ID: w.ID, Run: w.Run, Agent: w.Agent, Name: w.Name, State: w.State, Phase: w.Phase, Tool: w.Tool, Iteration: w.Iteration,
			Message: w.Message, Elapsed: w.Elapsed(now), LaunchedAt: w.LaunchedAt.UTC(), Summary: w.Summary, Error: w.Error, Interactive: w.Interactive,
		}
		if w.State.Ended() {
			list[i].EndedAt = new(w.EndedAt.UTC())
		}
	}
	return list
}
