package openai

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"parley/assembly"
)

// imageBytes bounds the images of one request, before encoding. The newest come
// first; those that find no room are named.
const imageBytes = 20 << 20

// request is the body of a chat completion.
// https://platform.openai.com/docs/api-reference/chat/create
type request struct {
	Model    string    `json:"model"`
	Stream   bool      `json:"stream"`
	Messages []message `json:"messages"`
}

// message has a string as its content, or []content where there are images:
// not every server takes the longer form.
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

// encode writes the request of a run.
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
	body, err := json.Marshal(request{Model: a.config.Model, Stream: true, Messages: messages})
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return body, nil
}

// message encodes one message; its images take of the room.
func (a *Agent) message(ctx context.Context, m assembly.Message, room *int64) message {
	var parts []content
	var texts []string
	images := false
	for _, p := range m.Parts {
		c := content{Type: "text", Text: p.Text}
		if p.File != nil {
			c.Text = describe(*p.File)
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

// image is a file as a data URL, if it is an image that models take, judged by
// its bytes, and if there is room for it. Only a user's message can hold images.
func (a *Agent) image(ctx context.Context, role assembly.Role, file assembly.File, room *int64) (string, bool) {
	if role != assembly.RoleUser || file.Path == "" || a.files == nil {
		return "", false
	}
	opened, err := a.files.Open(ctx, file.Bucket, file.Path)
	if err != nil {
		return "", false // the copy is gone or out of reach: its name must do
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

// describe names a file that the model does not see.
func describe(file assembly.File) string {
	words := []string{"file: " + cmp.Or(plain(file.Name, 120), "unnamed")}
	if kind := plain(file.MimeType, 120); kind != "" {
		words = append(words, kind)
	}
	if file.Size > 0 {
		words = append(words, size(file.Size))
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// size is a number of bytes for a reader, in powers of a thousand.
func size(bytes int64) string {
	value := float64(bytes)
	for _, unit := range []string{"B", "kB", "MB"} {
		if value < 999.5 {
			return fmt.Sprintf("%.0f %s", value, unit)
		}
		value /= 1000
	}
	return fmt.Sprintf("%.0f GB", value)
}

// plain is somebody else's text as a piece of one line: white space is one space,
// what can't be seen is gone, and the rest is cut at so many characters. A file's
// name is chosen by whoever sends it, and must not look like another message.
func plain(text string, limit int) string {
	seen := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	runes := []rune(strings.Join(strings.Fields(seen), " "))
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}
