package agui

import (
	"context"
	"encoding/json"
	"slices"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
)

var _ turn.TakesGiven = (*Agent)(nil)

// runInput is a RunAgentInput. Tools, context, state and forwardedProps are always sent, also
// if they are empty, because older endpoints require them.
type runInput struct {
	ThreadID       string            `json:"threadId"`
	RunID          string            `json:"runId"`
	ParentRunID    string            `json:"parentRunId,omitempty"`
	State          json.RawMessage   `json:"state"`
	Messages       []json.RawMessage `json:"messages"`
	Tools          json.RawMessage   `json:"tools"`
	Context        json.RawMessage   `json:"context"`
	ForwardedProps json.RawMessage   `json:"forwardedProps"`
	Resume         []resumed         `json:"resume,omitempty"`
}

// message is one message. Its content is a string, or a list of parts if it has images.
type message struct {
	ID      string        `json:"id"`
	Role    assembly.Role `json:"role"`
	Content any           `json:"content"`
	// ToolCalls are the calls of Parley's tools in an earlier answer of the run, and ToolCallID is the one that a
	// tool's message answers.
	ToolCalls  []runinput.Call `json:"toolCalls,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
}

// TakesGiven implements turn.TakesGiven.
func (a *Agent) TakesGiven() assembly.Native {
	return assembly.Native{Instructions: true, Tools: true, Facts: true, Messages: true}
}

// imagePart is an image of a user's message.
type imagePart struct {
	Type   string `json:"type"` // image
	Source source `json:"source"`
}

type source struct {
	Type     string `json:"type"` // data
	Value    string `json:"value"`
	MimeType string `json:"mimeType"`
}

// input returns the body of a run. The client's own messages follow the user's. The members
// that the protocol does not know stay here: one of them could answer an interrupt.
func (a *Agent) input(ctx context.Context, input assembly.Input, images *remote.Images) (runInput, error) {
	given := input.Given
	out := runInput{
		ThreadID: input.ThreadID, RunID: input.RequestID(), ParentRunID: given.ParentRunID, Resume: resume(input.Resume), State: runinput.Or(given.State, `{}`),
		Context: runinput.Or(given.Context, `[]`), ForwardedProps: a.config.Noted(input.Notes).Forward(assembly.Dispatched(runinput.Or(given.ForwardedProps, `{}`), input.Said)),
	}
	tools, err := offered(input)
	if err != nil {
		return out, err
	}
	if out.Tools, err = json.Marshal(tools); err != nil {
		return out, err
	}
	contents := images.Contents(ctx, input.Messages, func(kind, mark, _ string) any {
		return imagePart{"image", source{"data", mark, kind}}
	})
	var messages []message
	if a.config.SystemPrompt != "" {
		messages = append(messages, message{ID: "system", Role: assembly.RoleSystem, Content: a.config.SystemPrompt})
	}
	for i, m := range input.Messages {
		messages = append(messages, message{m.ID, m.Role, contents[i], m.Calls, m.CallID})
	}
	said := len(messages) - 1 // the user's message, before the steps of the run
	for said > 0 && input.Step > 0 && messages[said].Role != assembly.RoleUser {
		said--
	}
	for i, m := range messages {
		raw, err := json.Marshal(m)
		if err != nil {
			return out, err
		}
		if i == said {
			out.Messages = append(append(out.Messages, runinput.With(raw, given.User)), given.More...)
			continue
		}
		out.Messages = append(out.Messages, raw)
	}
	return out, nil
}

// offered returns the tools that Parley and the client offer, each as a JSON object; of several with one name the
// first.
func offered(input assembly.Input) (list []json.RawMessage, err error) {
	list = []json.RawMessage{}
	for _, tool := range input.Tools {
		raw, err := json.Marshal(tool)
		if err != nil {
			return nil, err
		}
		list = append(list, raw)
	}
	var clients []json.RawMessage
	if err := json.Unmarshal(runinput.Or(input.Given.Tools, `[]`), &clients); err != nil {
		return nil, err
	}
	for _, raw := range clients {
		var tool runinput.Tool
		_ = json.Unmarshal(raw, &tool) // the reader has checked it
		if !isOurs(input, tool.Name) {
			list = append(list, raw)
		}
	}
	return list, nil
}

// isOurs reports whether a tool is Parley's.
func isOurs(input assembly.Input, name string) bool {
	return slices.ContainsFunc(input.Tools, func(t runinput.Tool) bool { return t.Name == name })
}
