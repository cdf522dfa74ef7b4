package web

import (
	"context"
	"errors"
	"net/http"

	"parley/adapters/guard"
	"parley/assembly/stream"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// LaterRuns takes the later answers of agents that have taken a run.
type LaterRuns interface {
	LaterRun(ctx context.Context, run string) (journal.Later, error)
	AnswerRun(ctx context.Context, run string, answer stream.Message) error
}

// Replies handles the later answers of agents.
type Replies struct {
	Runs LaterRuns
	// Secrets are the secrets of the agents that may answer later, by agent.
	Secrets func() map[string]secret.Value
	// Wake makes the turn of a thread run.
	Wake  func(agent string, thread int64)
	Guard *guard.Guard
}

// Post takes one answer: POST /api/v1/runs/{run_id}/reply {"content"}. Its other keys are the
// agent's own, as in an answer to the request.
func (p Replies) Post(w http.ResponseWriter, r *http.Request) {
	a := API{Guard: p.Guard}
	agents := p.agents(guard.Bearer(r))
	if len(agents) == 0 {
		refuseToken(a, w, r, "the request needs the secret of the run's agent: Authorization: Bearer …")
		return
	}
	raw, ok := a.body(w, r)
	if !ok {
		return
	}
	answer, err := stream.ParseAnswer([]byte(event.Text(string(raw))))
	if err != nil {
		a.fail(w, http.StatusBadRequest, "invalid", "the request has faults", event.FieldErrors{{Field: "content", Message: "is required: a text, which may be empty"}})
		return
	}
	answer.Text = event.Text(answer.Text) // without an escaped U+0000
	run := r.PathValue("run_id")
	later, err := p.Runs.LaterRun(r.Context(), run)
	if err == nil && !agents[later.Agent] {
		err = journal.ErrNotFound // the run of another agent
	}
	if err == nil {
		err = p.Runs.AnswerRun(r.Context(), run, answer)
	}
	switch {
	case err == nil:
		p.Wake(later.Agent, later.Thread)
		respond(w, http.StatusAccepted, map[string]any{"run_id": run})
	case errors.Is(err, journal.ErrNotFound):
		a.fail(w, http.StatusNotFound, "not-found", "this agent has no such run", nil)
	case errors.Is(err, journal.ErrAnswered):
		a.fail(w, http.StatusConflict, "answered", err.Error(), nil)
	case errors.Is(err, journal.ErrEnded):
		a.fail(w, http.StatusGone, "ended", err.Error(), nil)
	default:
		a.fail(w, http.StatusServiceUnavailable, "busy", "the store takes no answer now: send it again", nil)
	}
}

// agents returns the agents with a secret. It compares with every secret, so that the duration
// does not reveal which one matched.
func (p Replies) agents(given string) map[string]bool {
	found := map[string]bool{}
	for agent, secret := range p.Secrets() {
		if secret.Equal(given) {
			found[agent] = true
		}
	}
	return found
}
