package agui

import (
	"context"
	"encoding/json"

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
		ThreadID: input.ThreadID, RunID: input.RunID, Resume: resume(input.Resume), State: runinput.Or(given.State, `{}`),
		Tools: runinput.Or(given.Tools, `[]`), Context: runinput.Or(given.Context, `[]`), ForwardedProps: a.config.Noted(input.Notes).Forward(runinput.Or(given.ForwardedProps, `{}`)),
	}
	contents := images.Contents(ctx, input.Messages, func(kind, mark string) any {
		return imagePart{"image", source{"data", mark, kind}}
	})
	var messages []message
	if a.config.SystemPrompt != "" {
		messages = append(messages, message{"system", assembly.RoleSystem, a.config.SystemPrompt})
	}
	for i, m := range input.Messages {
		messages = append(messages, message{m.ID, m.Role, contents[i]})
	}
	for i, m := range messages {
		raw, err := json.Marshal(m)
		if err != nil {
			return out, err
		}
		if i == len(messages)-1 {
			raw = runinput.With(raw, given.User)
		}
		out.Messages = append(out.Messages, raw)
	}
	out.Messages = append(out.Messages, given.More...)
	return out, nil
}
