package openai

import (
	"context"

	"parley/adapters/agent/remote"
	"parley/assembly"
)

// request is the body of a chat completion.
// https://platform.openai.com/docs/api-reference/chat/create
type request struct {
	Model    string    `json:"model"`
	Stream   bool      `json:"stream"`
	Options  options   `json:"stream_options"`
	Messages []message `json:"messages"`
}

// options ask the server to end its stream with the counts of tokens.
type options struct {
	IncludeUsage bool `json:"include_usage"`
}

// message has a string as its content, or a list if it has images: not every server accepts
// the longer form.
type message struct {
	Role    assembly.Role `json:"role"`
	Content any           `json:"content"`
}

type imagePart struct {
	Type     string   `json:"type"` // image_url
	ImageURL imageURL `json:"image_url"`
}

type imageURL struct {
	URL string `json:"url"`
}

// request returns the body of a run's request.
func (a *Agent) request(ctx context.Context, input assembly.Input, images *remote.Images) request {
	messages := make([]message, 0, len(input.Messages)+1)
	if a.config.SystemPrompt != "" {
		messages = append(messages, message{assembly.RoleSystem, a.config.SystemPrompt})
	}
	contents := images.Contents(ctx, input.Messages, func(kind, mark string) any {
		return imagePart{"image_url", imageURL{"data:" + kind + ";base64," + mark}}
	})
	for i, m := range input.Messages {
		messages = append(messages, message{m.Role, contents[i]})
	}
	return request{Model: a.config.Model, Stream: true, Options: options{IncludeUsage: true}, Messages: messages}
}
