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
	Options  *options  `json:"stream_options,omitempty"`
	Messages []message `json:"messages"`
}

// streamOptions is the name of the parameter that some servers do not know.
const streamOptions = "stream_options"

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
func (a *Agent) request(ctx context.Context, form remote.Form) request {
	body := request{Model: a.config.Model, Stream: true}
	if form.Has(streamOptions) {
		body.Options = &options{IncludeUsage: true}
	}
	said, prompt := form.Input.Messages, a.config.Prompt(form.Input.Notes)
	if form.Strict {
		said = remote.Alternate(said, assembly.JoinApart)
		if form.NoRole && prompt != "" {
			remote.Prepend(prompt, said)
			prompt = ""
		}
	}
	if prompt != "" {
		body.Messages = append(body.Messages, message{assembly.RoleSystem, prompt})
	}
	contents := form.Images.Contents(ctx, said, func(kind, mark string) any {
		return imagePart{"image_url", imageURL{"data:" + kind + ";base64," + mark}}
	})
	for i, m := range said {
		body.Messages = append(body.Messages, message{m.Role, contents[i]})
	}
	return body
}
