package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/assembly/workstream"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/workstreams"
)

// action is a request about a run's workstreams, of a caller who may write in the run's thread or of the run's own
// agent. by is the caller with a token; empty for an agent with its secret.
type action func(a API, w http.ResponseWriter, r *http.Request, run runs.Later, by workstream.Client, body []byte) error

// workstreamRoutes returns the routes of workstreams.
func (a API) workstreamRoutes() (routes []access.Route) {
	for _, prefix := range []string{"", "/api/v1"} {
		of := prefix + "/runs/{runId}/workstreams"
		one := of + "/{launchId}/"
		routes = append(routes,
			a.reads("GET "+of, API.listWorkstreams),
			a.action("POST "+of, API.launch),
			a.action("POST "+one+"messages", API.messageWorkstream),
			a.action("POST "+one+"steer", API.steerWorkstream),
			a.action("POST "+one+"terminate", API.terminateWorkstream),
			a.action("POST "+one+"progress", API.reportProgress),
		)
	}
	for i := range routes {
		routes[i].NotFound = "there is no such run that works, or no such workstream of it"
	}
	return routes
}

// action returns the route of an action. The run's agent acts with its secret, and so does the agent of the workstream
// if it reports.
func (a API) action(pattern string, act action) access.Route {
	reports := strings.HasSuffix(pattern, "/progress")
	return access.Route{
		Pattern: pattern,
		Take: func(c access.Call, w http.ResponseWriter, r *http.Request, body []byte) error {
			own, err := a.of(c).ownRun(r)
			if err != nil {
				return err
			}
			run, err := a.Replies.Runs.LaterRun(r.Context(), own.ID)
			if err != nil {
				return err
			}
			return act(a, w, r, run, workstream.Client{ID: string(c.Actor), Name: c.Token.Name}, body)
		},
		Own: func(w http.ResponseWriter, r *http.Request, body []byte, agents map[string]bool) error {
			run, err := a.Replies.Runs.LaterRun(r.Context(), r.PathValue("runId"))
			if err != nil {
				return err
			}
			if !agents[run.Agent] && !(reports && a.isChildOf(r, run.ID, agents)) {
				return storage.ErrNotFound
			}
			return act(a, w, r, run, workstream.Client{}, body)
		},
	}
}

// isChildOf reports whether the path names a workstream of a run that one of agents works for.
func (a API) isChildOf(r *http.Request, run string, agents map[string]bool) bool {
	child, err := a.child(r, run)
	return err == nil && agents[child.Agent]
}

// child returns the workstream that the path names, of a run.
func (a API) child(r *http.Request, run string) (workstreams.Workstream, error) {
	child, err := a.Children.Workstream(r.Context(), r.PathValue("launchId"))
	if err == nil && child.Run != run {
		err = storage.ErrNotFound
	}
	return child, err
}

// launch launches a workstream: POST /runs/{runId}/workstreams
func (a API) launch(w http.ResponseWriter, r *http.Request, run runs.Later, by workstream.Client, body []byte) error {
	var given struct {
		Task        string `json:"task"`
		Agent       string `json:"agent"`
		Name        string `json:"name"`
		Interactive bool   `json:"interactive"`
		Deadline    *int64 `json:"deadline_seconds"`
		Merge       *bool  `json:"merge_child_artifacts"`
	}
	if err := readMembers(body, &given); err != nil {
		return err
	}
	task := workstream.Task{
		Task: event.Text(given.Task), Agent: given.Agent, Name: event.Text(given.Name), Interactive: given.Interactive,
		Deadline: workstream.DeadlineOf(given.Deadline), Key: r.Header.Get("Idempotency-Key"),
		Apart: given.Merge != nil && !*given.Merge, By: by,
	}
	child, err := a.Workstreams.Launch(r.Context(), run.ID, run.Agent, task)
	if err != nil {
		return workstreamError(err)
	}
	return exchange.Respond(w, http.StatusCreated, map[string]any{
		"launch_id": child.ID, "run_id": r.PathValue("runId"), "state": child.State, "deadline_at": child.DeadlineAt.UTC(),
	})
}

// readMembers reads the members of a request's object, whose types are checked.
func readMembers(body []byte, given any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(given)
	if name, unknown := strings.CutPrefix(fmt.Sprint(err), "json: unknown field "); unknown {
		return event.FieldErrors{{Field: strings.Trim(name, `"`), Message: "is not a key of this request"}}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return event.FieldErrors{{Field: wrong.Field, Message: "must not be a " + wrong.Value}}
	}
	if err != nil {
		return event.FieldErrors{{Field: payload.Whole, Message: "must be a JSON object"}}
	}
	return nil
}

// workstreamError returns the response to an error of workstreams.
func workstreamError(err error) error {
	fault, faulty := errors.AsType[workstream.Fault](err)
	switch {
	case faulty && fault.Field == "":
		return exchange.Fail(http.StatusForbidden, "forbidden", fault.Words)
	case faulty:
		return event.FieldErrors{{Field: fault.Field, Message: fault.Words}}
	case errors.Is(err, workstreams.ErrTooMany):
		return exchange.Fail(http.StatusConflict, "too-many", err.Error())
	case errors.Is(err, workstreams.ErrTooDeep):
		return exchange.Fail(http.StatusForbidden, "forbidden", err.Error())
	case errors.Is(err, workstreams.ErrEnded):
		return exchange.Fail(http.StatusConflict, "ended", err.Error())
	}
	return err
}

// tell gives a workstream words of its parent.
func (a API) tell(w http.ResponseWriter, r *http.Request, run runs.Later, t workstream.Telling) error {
	child, err := a.child(r, run.ID)
	if err == nil {
		t.Key = r.Header.Get("Idempotency-Key")
		err = workstreamError(a.Workstreams.Tell(r.Context(), child.ID, t))
	}
	if err != nil {
		return err
	}
	return accepted(w, child.ID)
}

// accepted responds to a request about a workstream that takes effect soon.
func accepted(w http.ResponseWriter, id string) error {
	return exchange.Respond(w, http.StatusAccepted, map[string]any{"launch_id": id})
}

// messageWorkstream gives a workstream a further message: POST …/{launchId}/messages {"message"}
func (a API) messageWorkstream(w http.ResponseWriter, r *http.Request, run runs.Later, by workstream.Client, body []byte) error {
	var given struct {
		Message string `json:"message"`
	}
	if err := readMembers(body, &given); err != nil {
		return err
	}
	return a.tell(w, r, run, workstream.Telling{By: by, Text: event.Text(given.Message)})
}

// steerWorkstream gives a workstream a directive: POST …/{launchId}/steer {"command","text"}
func (a API) steerWorkstream(w http.ResponseWriter, r *http.Request, run runs.Later, by workstream.Client, body []byte) error {
	var given struct {
		Command string `json:"command"`
		Text    string `json:"text"`
	}
	if err := readMembers(body, &given); err != nil {
		return err
	}
	if given.Command == "" {
		return event.FieldErrors{{Field: "command", Message: "is required"}}
	}
	return a.tell(w, r, run, workstream.Telling{By: by, Command: given.Command, Text: event.Text(given.Text)})
}

// terminateWorkstream makes a workstream end: POST …/{launchId}/terminate
func (a API) terminateWorkstream(w http.ResponseWriter, r *http.Request, run runs.Later, _ workstream.Client, _ []byte) error {
	child, err := a.child(r, run.ID)
	if err == nil {
		err = workstreamError(a.Workstreams.Terminate(r.Context(), child.ID))
	}
	if err != nil {
		return err
	}
	return accepted(w, child.ID)
}

// reportProgress stores the progress of a workstream: POST …/{launchId}/progress
func (a API) reportProgress(w http.ResponseWriter, r *http.Request, run runs.Later, by workstream.Client, body []byte) error {
	var given struct {
		Phase     workstreams.Phase `json:"phase"`
		Tool      string            `json:"tool"`
		Iteration int64             `json:"iteration"`
		Message   string            `json:"message"`
	}
	if err := readMembers(body, &given); err != nil {
		return err
	}
	child, err := a.child(r, run.ID)
	if err == nil {
		err = workstreamError(a.Workstreams.Report(r.Context(), child.ID, workstreams.Progress{
			Phase: given.Phase, Tool: event.Text(given.Tool), Iteration: given.Iteration, Message: event.Text(given.Message),
		}, by))
	}
	if err != nil {
		return err
	}
	return accepted(w, child.ID)
}

// reads returns a route that shows something of a run to those who may read its thread, and to the run's agent.
func (a API) reads(pattern string, show func(a API, w http.ResponseWriter, r *http.Request, run string) error) access.Route {
	return access.Route{
		Pattern: pattern,
		Serve: func(c access.Call, w http.ResponseWriter, r *http.Request) error {
			run, err := a.of(c).run(r)
			if err != nil {
				return err
			}
			return show(a, w, r, run.ID)
		},
		Own: func(w http.ResponseWriter, r *http.Request, _ []byte, agents map[string]bool) error {
			run, err := a.Replies.run(r, "runId", agents)
			if err != nil {
				return err
			}
			return show(a, w, r, run.ID)
		},
	}
}

// listWorkstreams responds with the workstreams of a run: GET /runs/{runId}/workstreams
func (a API) listWorkstreams(w http.ResponseWriter, r *http.Request, run string) error {
	children, err := a.Children.WorkstreamsOf(r.Context(), run)
	if err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusOK, map[string]any{"workstreams": workstream.List(children, a.Threads.Now())})
}
