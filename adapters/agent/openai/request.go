package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// message has a string as its content, or []content if it has images: not every server
// accepts the longer form.
type message struct {
	Role    assembly.Role `json:"role"`
	Content any           `json:"content"`
}

type content struct {
	Type     string    `json:"type"` // text or image_url
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

// encode returns the JSON of a run's request. The newest images have priority, and the files
// without room are only named.
func (a *Agent) encode(ctx context.Context, input assembly.Input, images *remote.Images) ([]byte, error) {
	messages := make([]message, 0, len(input.Messages)+1)
	for _, m := range slices.Backward(input.Messages) {
		messages = append(messages, encodeMessage(ctx, m, images))
	}
	if a.config.SystemPrompt != "" {
		messages = append(messages, message{assembly.RoleSystem, a.config.SystemPrompt})
	}
	slices.Reverse(messages)
	body, err := json.Marshal(request{Model: a.config.Model, Stream: true, Options: options{IncludeUsage: true}, Messages: messages})
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return body, nil
}

// encodeMessage encodes one message. Only a user's message can contain images, each as a data
// URL.
func encodeMessage(ctx context.Context, m assembly.Message, images *remote.Images) message {
	var parts []content
	var texts []string
	plain := true
	for _, p := range m.Parts {
		c := content{Type: "text", Text: p.Text}
		if p.File != nil {
			c.Text = remote.Describe(*p.File)
			if m.Role == assembly.RoleUser {
				if kind, mark, ok := images.Add(ctx, *p.File); ok {
					c, plain = content{Type: "image_url", ImageURL: &imageURL{"data:" + kind + ";base64," + mark}}, false
				}
			}
		}
		parts, texts = append(parts, c), append(texts, c.Text)
	}
	if plain {
		return message{m.Role, strings.Join(texts, "\n")}
	}
	return message{m.Role, parts}
}
