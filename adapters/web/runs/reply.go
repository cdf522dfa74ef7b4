package runs

import (
	"errors"
	"net/http"

	"parley/adapters/guard"
	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
	"parley/ingest/work"
)

// Replies handles the later answers of agents.
type Replies struct {
	Gate access.Gate
	Runs *runs.Runs
	Work *work.Scheduler // runs the turns of threads
}

// Post takes one answer: POST /api/v1/runs/{run_id}/reply {"content"}. Its other keys are the
// agent's own, as in an answer to the request.
func (p Replies) Post(w http.ResponseWriter, r *http.Request) {
	exchange.Handler(p.Gate.Guard, "this agent has no such run", p.post)(w, r)
}

func (p Replies) post(w http.ResponseWriter, r *http.Request) error {
	agents := p.Gate.AgentsWith(guard.Bearer(r))
	if len(agents) == 0 {
		return p.Gate.RefuseToken(w, r, "the request needs the secret of the run's agent: Authorization: Bearer …")
	}
	raw, err := exchange.ReadBody(p.Gate.Guard, w, r, "the body must have at most 256 KiB and arrive within 10 seconds")
	if err != nil {
		return err
	}
	answer, err := stream.ParseAnswer([]byte(event.Text(string(raw))))
	if err != nil {
		return event.FieldErrors{{Field: "content", Message: "is required: a text, which may be empty"}}
	}
	answer.Text = event.Text(answer.Text) // without an escaped U+0000
	if answer.Details, err = card.Compile(answer.Details); err != nil {
		return err
	}
	run, err := p.run(r, "run_id", agents)
	if err == nil {
		err = p.Runs.AnswerRun(r.Context(), run.ID, answer)
	}
	if errors.Is(err, runs.ErrAnswered) {
		err = exchange.Fail(http.StatusConflict, "answered", err.Error())
	}
	if err != nil {
		return err
	}
	p.Work.Wake(work.Turns, run.Agent, run.Thread)
	return exchange.Respond(w, http.StatusAccepted, map[string]any{"run_id": r.PathValue("run_id")})
}

// run returns the run that the path names. The run of an agent that is not one of agents is like an
// unknown one.
func (p Replies) run(r *http.Request, name string, agents map[string]bool) (runs.Later, error) {
	run, err := p.Runs.LaterRun(r.Context(), r.PathValue(name))
	if err == nil && !agents[run.Agent] {
		err = storage.ErrNotFound
	}
	return run, err
}
