package tools

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/assembly/workstream"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// errBounded is the error of a call about the schedules of a thread if the run sees only a part of that thread. A run of a schedule
// sees all of it.
var errBounded = exchange.Fail(http.StatusForbidden, "forbidden", "a program has asked that may not read this thread: its token needs read with the workspace")

// view bounds the reading of a run's agent: the run's thread, and as far as its setting says, the threads that each person who asks sees
// too. A run that a bot or a program has begun reads its own channel at most.
type view struct {
	API
	run    *runs.Run
	scope  string
	askers []string // their ids, without the namespace
	people bool     // all who ask are people of the platform
	sight  *runs.Sight

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
	c, err := a.ofRun(r.Context(), run)
	if err != nil {
		return err
	}
	return a.serve(c, w, r, body)
}

// ofRun returns the call of a run's agent.
func (a API) ofRun(ctx context.Context, run *runs.Run) (call, error) {
	sight, err := a.Sight(ctx, run)
	if err != nil {
		return call{}, err
	}
	rights := a.rightsIn(run)
	if sight.Program != "" {
		rights.Read = ReadThread
	}
	v := &view{API: a, run: run, scope: rights.Read, people: len(run.Messages) > 0, sight: sight, threads: map[string]bool{}, channels: map[string]bool{}}
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
	return call{API: a, Caller: caller, view: v, by: "agent:" + run.Agent}, nil
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
	spot, err := v.Places.SpotOf(ctx, v.run.Workspace, thread)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return false, nil
	case err != nil, event.IsWorkstream(spot.Key), !v.sight.AdmitsPlace(event.Channel{ID: spot.Channel, Parent: spot.Parent}):
		return false, err
	case v.run.Platform != event.Web:
		return v.seesChannel(ctx, spot.Channel, spot.Parent), nil
	case v.scope != ReadWorkspace || !v.people:
		return false, nil
	}
	for _, actor := range v.askers {
		if takes, err := v.Places.TakesPart(ctx, &spot.Thread, actor); err != nil || !takes {
			return false, err
		}
	}
	return true, nil
}

// seesChannel reports whether the agent may read the threads of a channel, whose parent is a channel to which it belongs.
func (v *view) seesChannel(ctx context.Context, channel, parent string) bool {
	switch {
	case channel == "", !v.sight.AdmitsPlace(event.Channel{ID: channel, Parent: parent}):
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

// message returns a message of a thread as the caller sees it; false if it does not. Its error is the store's.
func (v *view) message(ctx context.Context, thread string, m messages.Message) (messages.Message, bool, error) {
	if v == nil {
		return m, true, nil
	}
	err := v.sees(ctx, thread)
	if errors.Is(err, storage.ErrNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	return v.sight.Shown(ctx, thread, m)
}

// maxPages bounds the pages that are read for one page of a run's agent.
const maxPages = 10

// page fills a page with at most limit elements, and leaves out those that the caller does not see. read returns the elements behind a position, which
// is empty for the first ones, and whether more may follow; see returns the element as the caller sees it, and position that of an
// element. next is the position of an element that the caller sees, and an empty page has none, so that it names no hidden one.
func page[T, R any](limit int, from string, read func(from string) ([]T, bool, error), see func(*T) (R, bool, error), position func(*T) string) (list []R, next *string, err error) {
	list = []R{}
	for range maxPages {
		found, more, err := read(from)
		if err != nil {
			return nil, nil, err
		}
		for i := range found {
			from = position(&found[i])
			shown, ok, err := see(&found[i])
			if err != nil {
				return nil, nil, err
			}
			if !ok {
				continue
			}
			list, next = append(list, shown), new(from)
			if len(list) == limit {
				return list, next, nil
			}
		}
		if !more {
			return list, nil, nil
		}
	}
	return list, next, nil
}

type readArtifact struct {
	Path   string `json:"path" jsonschema:"the path of the file, as the report of the workstream has it"`
	Offset int64  `json:"offset,omitempty" jsonschema:"the number of bytes before the part: next of the part before"`
}

// readArtifact returns a part of a file of a workstream.
func (c call) readArtifact(ctx context.Context, in readArtifact) (workstream.Part, error) {
	part, err := c.Artifacts.Read(ctx, c.view.run, in.Path, in.Offset)
	if fault, ok := errors.AsType[workstream.Fault](err); ok {
		err = event.FieldErrors{{Field: fault.Field, Message: fault.Words}}
	}
	return part, err
}
