package tools

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/places"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// Runs are the runs of agents that use the tools.
type Runs interface {
	GoingRun(ctx context.Context, id string) (*runs.Run, error)
	SpotOf(ctx context.Context, workspace, thread string) (places.Spot, error)
	TakesPart(ctx context.Context, t *places.Thread, actor string) (bool, error)
}

// view bounds the reading of a run's agent: the run's thread, and as far as its setting says, the threads that each person who asks sees
// too. A run that a bot or a program has begun reads its own channel at most.
type view struct {
	API
	run    *runs.Run
	scope  string
	askers []string // their ids, without the namespace
	people bool     // all who ask are people of the platform

	threads  map[string]bool // whether the agent sees them, by their ids
	channels map[string]bool
}

// takeRun serves a request of the agent of a run.
func (a API) takeRun(w http.ResponseWriter, r *http.Request, body []byte, id string) error {
	run, err := a.Runs.GoingRun(r.Context(), id)
	if errors.Is(err, storage.ErrNotFound) {
		return access.RunEnded(w)
	}
	if err != nil {
		return err
	}
	return a.serve(a.ofRun(run), w, r, body)
}

// ofRun returns the call of a run's agent.
func (a API) ofRun(run *runs.Run) call {
	rights := a.rightsIn(run)
	v := &view{API: a, run: run, scope: rights.Read, people: len(run.Messages) > 0, threads: map[string]bool{}, channels: map[string]bool{}}
	for i := range run.Messages {
		m := &run.Messages[i]
		namespace, id, _ := strings.Cut(m.SenderID, ":")
		if run.Platform == event.Web {
			id = m.SenderID
		} else if namespace != a.Namespace(run.Platform) || m.Origin == messages.API || m.Origin == messages.Imported {
			v.people = false
		}
		v.people = v.people && m.Author == messages.ByHuman && !event.IsOperator(m.SenderID)
		v.askers = append(v.askers, id)
	}
	caller := access.Caller{Workspace: run.Workspace, Token: access.Token{ID: "run " + run.ID, Read: []string{run.Workspace}, Posts: rights.Post}}
	return call{API: a, Caller: caller, view: v, by: "agent:" + run.Agent}
}

// rightsIn returns what the agent of a run may do in it. In a workstream it reads its own thread alone, and speaks nowhere else.
func (a API) rightsIn(run *runs.Run) Rights {
	rights := a.Rights(run.Agent)
	if event.IsWorkstream(run.ThreadKey) && rights.Offers() {
		return Rights{Read: ReadThread}
	}
	return rights
}

// sees returns ErrNotFound if the agent may not read a thread of its workspace.
func (v *view) sees(ctx context.Context, thread string) error {
	if v == nil || thread == v.run.ThreadID {
		return nil
	}
	known, ok := v.threads[thread]
	if !ok {
		var err error
		if known, err = v.find(ctx, thread); err != nil {
			return err
		}
		v.threads[thread] = known
	}
	if !known {
		return storage.ErrNotFound
	}
	return nil
}

func (v *view) find(ctx context.Context, thread string) (bool, error) {
	if v.scope != ReadChannel && v.scope != ReadWorkspace {
		return false, nil
	}
	spot, err := v.Runs.SpotOf(ctx, v.run.Workspace, thread)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return false, nil
	case err != nil, event.IsWorkstream(spot.Key):
		return false, err
	case v.run.Platform != event.Web:
		return v.seesChannel(ctx, spot.Channel, spot.Parent), nil
	case v.scope != ReadWorkspace || !v.people:
		return false, nil
	}
	for _, actor := range v.askers {
		if takes, err := v.Runs.TakesPart(ctx, &spot.Thread, actor); err != nil || !takes {
			return false, err
		}
	}
	return true, nil
}

// seesChannel reports whether the agent may read the threads of a channel, whose parent is a channel to which it belongs.
func (v *view) seesChannel(ctx context.Context, channel, parent string) bool {
	switch {
	case channel == "":
		return false
	case channel == v.run.Channel:
		return v.scope != "" && v.scope != ReadThread
	case v.scope == ReadChannel && cmp.Or(parent, channel) != cmp.Or(v.run.Parent, v.run.Channel), v.scope != ReadChannel && v.scope != ReadWorkspace, !v.people:
		return false
	}
	known, ok := v.channels[channel]
	if !ok {
		known = true
		for _, user := range v.askers {
			known = known && v.Sees(ctx, v.run.Workspace, channel, user)
		}
		v.channels[channel] = known
	}
	return known
}

// errNoPeople is the error of a search for people that the setting does not allow.
var errNoPeople = exchange.Fail(http.StatusForbidden, "forbidden", "this agent may not look for people: its setting tools needs read: workspace")

// kept returns the elements of a list whose threads the agent sees. Its error is the store's.
func kept[T any](ctx context.Context, v *view, list []T, thread func(*T) string) ([]T, error) {
	if v == nil {
		return list, nil
	}
	seen := list[:0:0]
	for i := range list {
		err := v.sees(ctx, thread(&list[i]))
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			seen = append(seen, list[i])
		}
	}
	return seen, nil
}

// maxPages bounds the pages that are read for one page of a run's agent.
const maxPages = 4
