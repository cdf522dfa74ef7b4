package runapi

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"parley/assembly/runinput"
	"parley/ingest/stream"
)

// toolCall is the details of an UPDATE about a call of a tool.
type toolCall struct {
	ID        string          `json:"tool_use_id"`
	Arguments json.RawMessage `json:"arguments"` // an object, or its text
}

// call makes the call that a message reports, if it is the beginning of a call of Parley's tools. The result is a
// signal UserInput, as a message of a person during the run is. A stream that begins again, and a further attempt, repeat
// the call under its id, which has no further effect. The run goes on if the server does not take the signal.
func (f *follower) call(ctx context.Context, m stream.Message) error {
	name, happened := m.Tool()
	if m.Type != stream.Update || happened != "started" || !slices.ContainsFunc(f.input.Tools, func(t runinput.Tool) bool { return t.Name == name }) {
		return nil
	}
	var c toolCall
	if json.Unmarshal(m.Details, &c) != nil || c.ID == "" {
		return nil
	}
	arguments := string(bytes.TrimSpace(c.Arguments))
	var text string
	if json.Unmarshal(c.Arguments, &text) == nil {
		arguments = text
	}
	result, err := f.input.Call(ctx, runinput.Call{ID: c.ID, Name: name, Arguments: arguments})
	if err != nil {
		return err
	}
	said, _ := json.Marshal(map[string]any{"tool": name, "tool_use_id": c.ID, "result": json.RawMessage(result)}) // JSON already
	if err := f.agent.signal(ctx, f.run, "UserInput", userInput{string(said), "tool-" + c.ID}); err != nil {
		return f.emit(stream.Message{Type: stream.Warning, Text: "The agent did not take the result of " + name + ": " + err.Error()})
	}
	return nil
}
