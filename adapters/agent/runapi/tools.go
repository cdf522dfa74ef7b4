package runapi

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"parley/assembly/runinput"
	"parley/assembly/stream"
)

// toolCall is the details of an UPDATE about a call of a tool.
type toolCall struct {
	Tool      string          `json:"tool"`
	Event     string          `json:"tool_event"` // started, progress, completed, failed
	ID        string          `json:"tool_use_id"`
	Arguments json.RawMessage `json:"arguments"` // an object, or its text
}

// call makes the call that a message reports, if it is the beginning of a call of Parley's tools. The result is a
// signal UserInput, as a message of a person during the run is. A stream that begins again, and a further attempt, repeat
// the call under its id, which has no further effect.
func (f *follower) call(ctx context.Context, m stream.Message) error {
	var c toolCall
	if m.Type != stream.Update || json.Unmarshal(m.Details, &c) != nil || c.Event != "started" || c.ID == "" {
		return nil
	}
	if !slices.ContainsFunc(f.input.Tools, func(t runinput.Tool) bool { return t.Name == c.Tool }) {
		return nil
	}
	arguments := string(bytes.TrimSpace(c.Arguments))
	var text string
	if json.Unmarshal(c.Arguments, &text) == nil {
		arguments = text
	}
	result, err := f.input.Call(ctx, runinput.Call{ID: c.ID, Name: c.Tool, Arguments: arguments})
	if err != nil {
		return err
	}
	said, _ := json.Marshal(map[string]any{"tool": c.Tool, "tool_use_id": c.ID, "result": json.RawMessage(result)}) // JSON already
	return f.agent.signal(ctx, f.run, "UserInput", userInput{string(said), "tool-" + c.ID})
}
