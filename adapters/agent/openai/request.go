package openai

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"parley/adapters/agent/remote"
	"parley/assembly"
)

// imageBytes bounds the images of one request, before encoding. The newest images have
// priority; the others are only named.
const imageBytes = 20 << 20

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

// encode returns the request of a run.
func (a *Agent) encode(ctx context.Context, input assembly.Input) ([]byte, error) {
	messages := make([]message, 0, len(input.Messages)+1)
	room := int64(imageBytes)
	for _, m := range slices.Backward(input.Messages) {
		messages = append(messages, a.message(ctx, m, &room))
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

// message encodes one message. It subtracts the size of its images from room.
func (a *Agent) message(ctx context.Context, m assembly.Message, room *int64) message {
	var parts []content
	var texts []string
	images := false
	for _, p := range m.Parts {
		c := content{Type: "text", Text: p.Text}
		if p.File != nil {
			c.Text = remote.Describe(*p.File)
			if address, ok := a.image(ctx, m.Role, *p.File, room); ok {
				c, images = content{Type: "image_url", ImageURL: &imageURL{address}}, true
			}
		}
		parts, texts = append(parts, c), append(texts, c.Text)
	}
	if images {
		return message{m.Role, parts}
	}
	return message{m.Role, strings.Join(texts, "\n")}
}

// image returns a file as a data URL if its bytes are an image that models accept and room is
// large enough. Only a user's message can contain images.
func (a *Agent) image(ctx context.Context, role assembly.Role, file assembly.File, room *int64) (string, bool) {
	if role != assembly.RoleUser || file.Path == "" || a.files == nil {
		return "", false
	}
	opened, err := a.files.Open(ctx, file.Bucket, file.Path)
	if err != nil {
		return "", false // the copy is gone or unreachable, so the model gets its name
	}
	defer opened.Close()
	copied := bufio.NewReader(opened)
	head, _ := copied.Peek(512)
	kind := http.DetectContentType(head)
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind) {
		return "", false
	}
	image, err := io.ReadAll(io.LimitReader(copied, *room+1))
	if err != nil || int64(len(image)) > *room {
		return "", false
	}
	*room -= int64(len(image))
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(image), true
}
