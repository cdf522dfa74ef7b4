package webhook

import (
	"context"
	"encoding/json"
	"slices"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/ingest/event"
)

// request is the body of a request.
type request struct {
	RunID     string         `json:"run_id"`
	ThreadID  string         `json:"thread_id"`
	Workspace string         `json:"workspace"`
	Platform  event.Platform `json:"platform"`
	Messages  []any          `json:"messages"` // the assembled input, and the client's further messages as it sent them
	// Notes are facts beside the messages; nil for none.
	Notes   *assembly.Notes `json:"notes,omitempty"`
	Message message         `json:"message"` // the turn's last one, as its author typed it
	// The parts of a RunAgentInput; absent for any other run.
	ParentRunID    string          `json:"parentRunId,omitempty"`
	State          json.RawMessage `json:"state,omitempty"`
	Tools          json.RawMessage `json:"tools,omitempty"`
	Context        json.RawMessage `json:"context,omitempty"`
	ForwardedProps json.RawMessage `json:"forwardedProps,omitempty"`
}

type said struct {
	Role    assembly.Role `json:"role"`
	Content string        `json:"content"`
}

type message struct {
	ID          string          `json:"id"`
	Content     string          `json:"content"`
	Metadata    json.RawMessage `json:"metadata"`
	Attachments []attachment    `json:"attachments,omitempty"` // of all messages of the turn
}

// attachment is a file. Data is the base64 of an image, and absent for any other file.
type attachment struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`
	Data     string `json:"data,omitempty"`
}

func (a *Agent) request(ctx context.Context, input assembly.Input, images *remote.Images) request {
	given := &input.Given
	r := request{
		RunID: input.RunID, ThreadID: input.ThreadID, Workspace: input.Workspace, Platform: input.Platform,
		ParentRunID: given.ParentRunID, State: given.State, Tools: given.Tools, Context: given.Context, ForwardedProps: given.ForwardedProps,
	}
	if a.config.SystemPrompt != "" {
		r.Messages = append(r.Messages, said{assembly.RoleSystem, a.config.SystemPrompt})
	}
	for _, m := range input.Messages {
		r.Messages = append(r.Messages, said{m.Role, remote.Text(m)})
	}
	for _, raw := range given.Said() {
		r.Messages = append(r.Messages, raw)
	}
	notes := a.config.Noted(input.Notes)
	if !notes.IsEmpty() {
		r.Notes = &notes
	}
	if n := len(input.Said); n > 0 {
		last := input.Said[n-1]
		r.Message = message{last.ID, last.Content, mentions(last.Metadata, notes.Names), attachments(ctx, input.Said, images)}
	}
	return r
}

// mentions returns a message's metadata with the names of those that the messages mention.
func mentions(metadata json.RawMessage, names []assembly.Name) json.RawMessage {
	members, err := event.ReadObject(metadata)
	if err != nil || len(names) == 0 || slices.ContainsFunc(members, func(m event.Extra) bool { return m.Key == "mentions" }) {
		return metadata
	}
	raw, _ := json.Marshal(names) // texts
	return event.WriteObject(append(members, event.Extra{Key: "mentions", Value: raw}))
}

func attachments(ctx context.Context, said []assembly.Said, images *remote.Images) (list []attachment) {
	for _, m := range said {
		for _, file := range m.Files {
			given := attachment{Name: file.Name, MimeType: file.MimeType, Size: file.Size}
			if kind, mark, ok := images.Add(ctx, file); ok {
				given.MimeType, given.Data = kind, mark
			}
			list = append(list, given)
		}
	}
	return list
}
