package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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
func (a API) Offered(run *runs.Run) []runinput.Tool {
	rights := a.rightsIn(run)
	if !rights.Offers() {
		return nil
	}
	child := event.IsWorkstream(run.ThreadKey)
	return slices.DeleteFunc(slices.Clone(described()), func(t runinput.Tool) bool {
		return child && slices.Contains(scheduling, t.Name) || !rights.schedules() && t.Name == "schedule_message" || len(rights.Post) == 0 && slices.Contains(acting, t.Name) ||
			rights.Read != ReadChannel && rights.Read != ReadWorkspace && slices.Contains(further, t.Name) ||
			rights.Read != ReadWorkspace && t.Name == "find_person"
	})
}

// described returns all tools.
var described = sync.OnceValue(func() (list []runinput.Tool) {
	_ = call{}.within(context.Background(), func(ctx context.Context, s *mcp.ClientSession) error { // nothing is asked but this process
		for tool, err := range s.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			schema, err := json.Marshal(tool.InputSchema)
			if err != nil {
				return err
			}
			list = append(list, runinput.Tool{Name: tool.Name, Description: tool.Description, Parameters: schema})
		}
		return nil
	})
	return list
})

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
	var broken error
	c.key, c.broken = run.ID+"/"+key, &broken
	err = c.within(ctx, func(ctx context.Context, s *mcp.ClientSession) error {
		got, err := s.CallTool(ctx, &mcp.CallToolParams{Name: made.Name, Arguments: json.RawMessage(made.Object())})
		if err != nil {
			result = failure(err.Error()) // of the arguments
			return nil
		}
		text, _ := got.Content[0].(*mcp.TextContent)
		switch {
		case text == nil:
			result = failure("the tool has no result")
		case got.IsError:
			result = failure(text.Text)
		case len(text.Text) > maxResult:
			result = failure(fmt.Sprintf("the result has %d bytes, more than %d: ask for less, with limit", len(text.Text), maxResult))
		default:
			result = text.Text
		}
		return broken
	})
	return result, err
}

func failure(words string) string {
	raw, _ := json.Marshal(map[string]string{"error": words}) // a text always encodes
	return string(raw)
}

// within runs f with a client of the call's server in this process.
func (c call) within(ctx context.Context, f func(context.Context, *mcp.ClientSession) error) error {
	near, far := mcp.NewInMemoryTransports()
	server, err := c.server().Connect(ctx, far, nil)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "parley", Version: c.Version}, nil).Connect(ctx, near, nil)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return f(ctx, client)
}
