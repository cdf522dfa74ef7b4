package openai

import (
	"context"
	"encoding/json"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/runinput"
)

// request is the body of a chat completion.
// https://platform.openai.com/docs/api-reference/chat/create
type request struct {
	Model    string    `json:"model"`
	Stream   bool      `json:"stream"`
	Options  *options  `json:"stream_options,omitempty"`
	Messages []message `json:"messages"`
	Tools    []tool    `json:"tools,omitempty"`
}

// tool is a function that the model may call.
type tool struct {
	Type     string   `json:"type"` // function
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// The parameters that some servers do not know.
var (
	streamOptions = remote.NewParameter("stream_options", `stream_option|include_usage`, true)
	streaming     = remote.NewParameter("stream", `['"`+"`"+`]stream['"`+"`"+`]|\bstreaming\b`, false)
	ownThoughts   = remote.NewParameter("reasoning of earlier calls", `reasoning(?:_content|_details)?\b|extra_content`, false)
	clientTools   = remote.NewParameter("tools", `\b(?:tools?|functions?)\b`, false)
)

// options ask the server to end its stream with the counts of tokens.
type options struct {
	IncludeUsage bool `json:"include_usage"`
}

// message has a string as its content, or a list if it has images: not every server accepts
// the longer form.
type message struct {
	Role    assembly.Role `json:"role"`
	Content any           `json:"content"`
	// ToolCalls are the calls in an assistant's message; ToolCallID is the one that a tool's message answers.
	ToolCalls  []sentCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	thoughts
}

// sentCall is a call that the model has made.
type sentCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // function
	Function sentFunction `json:"function"`
	// Extra is the provider's own data beside the call, which the provider wants back.
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

type sentFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func sentCalls(calls []runinput.Call) (list []sentCall) {
	for _, c := range calls {
		list = append(list, sentCall{ID: c.ID, Type: "function", Function: sentFunction{c.Name, c.Arguments}})
	}
	return list
}

type imagePart struct {
	Type     string   `json:"type"` // image_url
	ImageURL imageURL `json:"image_url"`
}

// filePart is a document.
// https://platform.openai.com/docs/guides/pdf-files
type filePart struct {
	Type string `json:"type"` // file
	File file   `json:"file"`
}

type file struct {
	Name string `json:"filename"`
	Data string `json:"file_data"` // a data: address
}

type imageURL struct {
	URL string `json:"url"`
}

// request returns the body of a run's request.
func (a *Agent) request(ctx context.Context, form remote.Form, tools *remote.Tools) request {
	body := request{Model: a.config.Model, Stream: form.Has(streaming.Name)}
	if body.Stream && form.Has(streamOptions.Name) {
		body.Options = &options{IncludeUsage: true}
	}
	said, prompt := form.Input.Messages, a.config.Prompt(form.Input.Notes)
	if form.Strict {
		said = remote.Alternate(assembly.Plain(said), assembly.JoinApart)
		if form.NoRole && prompt != "" {
			remote.Prepend(prompt, said)
			prompt = ""
		}
	}
	if prompt != "" {
		body.Messages = append(body.Messages, message{Role: assembly.RoleSystem, Content: prompt})
	}
	contents := form.Images.Contents(ctx, said, func(kind, mark, name string) any {
		if kind == remote.PDF {
			return filePart{"file", file{name, "data:" + kind + ";base64," + mark}}
		}
		return imagePart{"image_url", imageURL{"data:" + kind + ";base64," + mark}}
	})
	first := len(body.Messages)
	for i, m := range said {
		body.Messages = append(body.Messages, message{Role: m.Role, Content: contents[i], ToolCalls: sentCalls(m.Calls), ToolCallID: m.CallID})
	}
	if form.Has(ownThoughts.Name) {
		giveBack(a.config.Model, said, body.Messages[first:])
	}
	for _, f := range tools.Functions() {
		body.Tools = append(body.Tools, tool{"function", function{f.Name, f.Description, f.Schema}})
	}
	return body
}
