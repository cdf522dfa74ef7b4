package runs

import (
	"cmp"
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

// notificationToken is the header in which a service of A2A repeats our token.
// https://a2a-protocol.org/v0.3.0/specification/#95-push-notification-setup-and-usage
const notificationToken = "X-A2A-Notification-Token"

// Push takes the report of an agent's server that its work on a run has gone on: POST /api/v1/runs/{run_id}/push, with the token of the run.
// Its body is not read: the agent is asked what has become of its work.
func (p Replies) Push(w http.ResponseWriter, r *http.Request) {
	exchange.Handler(p.Gate.Guard, "there is no such run", p.push)(w, r)
}

func (p Replies) push(w http.ResponseWriter, r *http.Request) error {
	known := r.PathValue("run_id")
	token, err := p.Gate.RunTokens.Push(r.Context(), known)
	if err != nil {
		return err
	}
	if !token.Equal(cmp.Or(r.Header.Get(notificationToken), guard.Bearer(r))) {
		return p.Gate.RefuseToken(w, r, "the request needs the token of the run's push notifications: "+notificationToken+": …")
	}
	p.Gate.Guard.Admit(r)
	run, err := p.Runs.LaterRun(r.Context(), known)
	if err == nil {
		err = p.Runs.NudgeRun(r.Context(), run.ID)
	}
	if err != nil {
		return err
	}
	p.Work.Wake(work.Turns, run.Agent, run.Thread)
	return exchange.Respond(w, http.StatusAccepted, map[string]any{"run_id": known})
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
