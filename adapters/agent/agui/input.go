package agui

import (
	"context"

	"parley/adapters/agent/remote"
	"parley/assembly"
)

// runInput is a RunAgentInput. Tools, context, state and forwardedProps are always sent, also
// if they are empty, because older endpoints require them.
type runInput struct {
	ThreadID       string     `json:"threadId"`
	RunID          string     `json:"runId"`
	State          struct{}   `json:"state"`
	Messages       []message  `json:"messages"`
	Tools          []struct{} `json:"tools"`
	Context        []struct{} `json:"context"`
	ForwardedProps struct{}   `json:"forwardedProps"`
	Resume         []resumed  `json:"resume,omitempty"`
}

// message is one message. Its content is a string, or a list of parts if it has images.
type message struct {
	ID      string        `json:"id"`
	Role    assembly.Role `json:"role"`
	Content any           `json:"content"`
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

func (a *Agent) input(ctx context.Context, input assembly.Input, images *remote.Images) runInput {
	out := runInput{
		ThreadID: input.ThreadID, RunID: input.RunID, Resume: resume(input.Resume),
		Messages: make([]message, 0, len(input.Messages)+1), Tools: []struct{}{}, Context: []struct{}{},
	}
	if a.config.SystemPrompt != "" {
		out.Messages = append(out.Messages, message{"system", assembly.RoleSystem, a.config.SystemPrompt})
	}
	contents := images.Contents(ctx, input.Messages, func(kind, mark string) any {
		return imagePart{"image", source{"data", mark, kind}}
	})
	for i, m := range input.Messages {
		out.Messages = append(out.Messages, message{m.ID, m.Role, contents[i]})
	}
	return out
}
