package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"parley/assembly/runinput"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// maxResult bounds a result that a model gets, in bytes.
const maxResult = 32 << 10

// acting are the tools for an agent that may post, further those for one that reads more than its thread, and scheduling those for one
// that is asked later, which no workstream is.
var (
	acting     = []string{"post_message", "react"}
	further    = []string{"list_threads", "list_channels"}
	scheduling = []string{"schedule_message", "list_schedules", "cancel_schedule"}
)

// Offered returns the tools that the model of a run may use, as far as its setting allows any.
func (a API) Offered(run *runs.Run) (list []runinput.Tool) {
	rights := a.rightsIn(run)
	if !rights.Offers() {
		return nil
	}
	child := event.IsWorkstream(run.ThreadKey)
	hidden := func(t tool) bool {
		return t.ofRun || child && slices.Contains(scheduling, t.Name) || !rights.schedules() && t.Name == "schedule_message" ||
			len(rights.Post) == 0 && slices.Contains(acting, t.Name) || rights.Read != ReadChannel && rights.Read != ReadWorkspace && slices.Contains(further, t.Name) ||
			rights.Read != ReadWorkspace && t.Name == "find_person"
	}
	for _, t := range all() {
		if !hidden(t) {
			list = append(list, runinput.Tool{Name: t.Name, Description: t.Description, Parameters: t.parameters})
		}
	}
	return list
}

// Call makes a call of the model of a run, and returns its result as JSON, also if something is wrong with the call. A post without
// a key is once by the key of the call. An error is the store's.
func (a API) Call(ctx context.Context, run *runs.Run, key string, made runinput.Call) (result string, err error) {
	now, err := a.Runs.GoingRun(ctx, run.ID) // others may have joined it
	if errors.Is(err, storage.ErrNotFound) {
		return failure("the run has ended"), nil
	}
	if err != nil {
		return "", err
	}
	c, err := a.ofRun(ctx, now)
	if err != nil {
		return "", err
	}
	c.key = run.ID + "/" + key
	i := slices.IndexFunc(all(), func(t tool) bool { return t.Name == made.Name })
	if i < 0 {
		return failure("there is no tool " + strconv.Quote(made.Name)), nil
	}
	out, err := all()[i].run(ctx, c, made.Object())
	if err != nil {
		words := c.explain(err)
		if storage.Unavailable(err) {
			return "", err
		}
		return failure(words), nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return "", err
	}
	if len(raw) > maxResult {
		return failure(fmt.Sprintf("the result has %d bytes, more than %d: ask for less, with limit", len(raw), maxResult)), nil
	}
	return string(raw), nil
}

func failure(words string) string {
	raw, _ := json.Marshal(map[string]string{"error": words}) // a text always encodes
	return string(raw)
}
