package workstream

import (
	"context"
	"encoding/json"
	"errors"

	"parley/assembly/runinput"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/workstreams"
)

// The tools of an agent that may launch workstreams.
const (
	launchTool    = "launch_workstream"
	messageTool   = "message_workstream"
	steerTool     = "steer_workstream"
	terminateTool = "terminate_workstream"
	listTool      = "list_workstreams"
	readTool      = "read_artifact"
)

// maxListed bounds the workstreams that list_workstreams shows.
const maxListed = 50

// schema is a JSON Schema.
type schema map[string]any

func text(description string) schema { return schema{"type": "string", "description": description} }

// object returns the schema of a tool's arguments.
func object(required []string, properties schema) json.RawMessage {
	raw, _ := json.Marshal(schema{"type": "object", "properties": properties, "required": required}) // texts and numbers always encode
	return raw
}

var launchID = text("The launch_id of the workstream.")

// Offered implements turn.Tools: the agents of the setting workstreams may launch some.
func (s *Service) Offered(run *runs.Run) []runinput.Tool {
	config, _ := s.Config(run.Agent)
	if len(config.Agents) == 0 || event.IsWorkstream(run.ThreadKey) && config.Depth < 2 {
		return nil
	}
	return []runinput.Tool{
		{Name: launchTool, Description: "Gives a task to another agent, which works on it in the background. Returns a launch_id at once. " +
			"The result comes later as a system message; do not wait for it, and tell the people what you have asked for.",
			Parameters: object([]string{"task", "agent"}, schema{
				"task": text("All that the agent needs to know: it does not see this conversation."), "agent": schema{"type": "string", "enum": config.Agents},
				"name":                  text("A short name for people."),
				"interactive":           schema{"type": "boolean", "description": "After the task, the agent waits for further messages until it is terminated."},
				"deadline_seconds":      schema{"type": "integer", "minimum": int(MinDeadline.Seconds()), "maximum": int(MaxDeadline.Seconds()), "default": int(DefaultDeadline.Seconds())},
				"merge_child_artifacts": schema{"type": "boolean", "default": true, "description": "Lists the files that it makes among those of this run."},
			})},
		{Name: messageTool, Description: "Sends a workstream a further message, which it answers. The answer comes later as a system message.",
			Parameters: object([]string{"launch_id", "message"}, schema{"launch_id": launchID, "message": text("The message.")})},
		{Name: steerTool, Description: "Gives a working workstream a directive, which it gets during its work if it can, else with its next input.",
			Parameters: object([]string{"launch_id", "command"}, schema{"launch_id": launchID, "command": schema{"type": "string", "enum": commands}, "text": text("The words of the directive.")})},
		{Name: terminateTool, Description: "Ends a workstream.", Parameters: object([]string{"launch_id"}, schema{"launch_id": launchID})},
		{Name: listTool, Description: "Lists the workstreams of this conversation with their states.", Parameters: object([]string{}, schema{})},
		{Name: readTool, Description: ReadDescription, Parameters: object([]string{"path"}, schema{
			"path":   text("The path of the file, as the report of the workstream has it."),
			"offset": schema{"type": "integer", "minimum": 0, "default": 0, "description": "The number of bytes before the part; next of the part before."},
		})},
	}
}

// ReadDescription describes the tool read_artifact.
const ReadDescription = "Reads a file that a workstream of this conversation has made, in parts of at most 15,000 bytes. A file that is no text is only described."

// arguments are those of all tools.
type arguments struct {
	Task        string `json:"task"`
	Agent       string `json:"agent"`
	Name        string `json:"name"`
	Interactive bool   `json:"interactive"`
	Deadline    *int64 `json:"deadline_seconds"`
	Merge       *bool  `json:"merge_child_artifacts"`
	ID          string `json:"launch_id"`
	Message     string `json:"message"`
	Command     string `json:"command"`
	Text        string `json:"text"`
	Path        string `json:"path"`
	Offset      int64  `json:"offset"`
}

// Call implements turn.Tools. The result is the JSON of the same request to our API, or {"error"}.
func (s *Service) Call(ctx context.Context, run *runs.Run, key string, call runinput.Call) (string, error) {
	var given arguments
	err := json.Unmarshal(call.Object(), &given)
	var result any
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = Fault{wrong.Field, "must not be a " + wrong.Value}
	} else if err == nil {
		result, err = s.call(ctx, run, key, call.Name, given)
	}
	if words, ok := refusal(err); ok {
		result, err = map[string]string{"error": words}, nil
	}
	if err != nil {
		return "", err
	}
	raw, err := event.JSON(result)
	return string(raw), err
}

// refusal returns the words of an error that the agent can do something about.
func refusal(err error) (words string, ok bool) {
	_, faulty := errors.AsType[Fault](err)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "there is no such workstream of this conversation, or the run has ended", true
	case faulty, errors.Is(err, workstreams.ErrTooMany), errors.Is(err, workstreams.ErrTooDeep), errors.Is(err, workstreams.ErrEnded):
		return err.Error(), true
	}
	return "", false
}

func (s *Service) call(ctx context.Context, run *runs.Run, key, name string, given arguments) (result any, err error) {
	switch name {
	case launchTool:
		w, err := s.Launch(ctx, run.ID, run.Agent, Task{
			Task: event.Text(given.Task), Agent: given.Agent, Name: event.Text(given.Name), Interactive: given.Interactive, Deadline: DeadlineOf(given.Deadline), Key: key,
			Apart: given.Merge != nil && !*given.Merge,
		})
		return map[string]any{"launch_id": w.ID, "state": w.State, "deadline_at": w.DeadlineAt.UTC()}, err
	case listTool:
		children, err := s.Workstreams.WorkstreamsBelow(ctx, run.ThreadKey, run.Agent, maxListed)
		return map[string]any{"workstreams": List(children, s.Now())}, err
	case readTool:
		return s.Read(ctx, run, given.Path, given.Offset)
	}
	child, err := s.childOf(ctx, run, given.ID)
	if err != nil {
		return nil, err
	}
	switch name {
	case messageTool:
		err = s.Tell(ctx, child.ID, Telling{Text: event.Text(given.Message), Key: key})
	case steerTool:
		if given.Command == "" {
			return nil, Fault{"command", "is required"}
		}
		err = s.Tell(ctx, child.ID, Telling{Command: given.Command, Text: event.Text(given.Text), Key: key})
	default:
		err = s.Terminate(ctx, child.ID)
	}
	return map[string]any{"launch_id": child.ID, "accepted": true}, err
}

// childOf returns a workstream that the agent of a run has launched in the run's thread. It returns storage.ErrNotFound for another one.
func (s *Service) childOf(ctx context.Context, run *runs.Run, id string) (workstreams.Workstream, error) {
	child, err := s.Workstreams.Workstream(ctx, id)
	if err == nil && (child.Of.Thread != run.ThreadKey || child.Of.Workspace != run.Workspace || child.Asker != run.Agent) {
		err = storage.ErrNotFound
	}
	return child, err
}
