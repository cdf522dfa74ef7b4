package anthropic

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"parley/adapters/agent/remote"
	"parley/assembly"
)

// request is the body of a request.
// https://docs.anthropic.com/en/api/messages
type request struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	System    string `json:"system,omitempty"`
	Messages  []said `json:"messages"`
	Stream    bool   `json:"stream"`
	// Tools are those of the client, or those of earlier calls, which the model must not call.
	Tools      []function  `json:"tools,omitempty"`
	ToolChoice *toolChoice `json:"tool_choice,omitempty"`
}

type said struct {
	Role    assembly.Role `json:"role"`
	Content any           `json:"content"` // a text, or a list of blocks
}

type imageBlock struct {
	Type   string `json:"type"` // image
	Source source `json:"source"`
}

// documentBlock is a document.
// https://docs.anthropic.com/en/docs/build-with-claude/pdf-support
type documentBlock struct {
	Type   string `json:"type"` // document
	Source source `json:"source"`
	Title  string `json:"title"`
}

type source struct {
	Type      string `json:"type"` // base64
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// toolUse is a call in an assistant's message.
type toolUse struct {
	Type  string          `json:"type"` // tool_use
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // an object
}

// toolResult is the result of a call, at the beginning of the user's message behind it.
type toolResult struct {
	Type      string `json:"type"` // tool_result
	ToolUseID string `json:"tool_use_id"`
	Content   string `json:"content,omitempty"`
}

// function is a tool that the model may call.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type toolChoice struct {
	Type string `json:"type"` // none
}

func (a *Agent) request(ctx context.Context, form remote.Form, tools *remote.Tools) request {
	messages := remote.Alternate(form.Input.Messages, assembly.Join)
	contents := form.Images.Contents(ctx, messages, func(kind, mark, name string) any {
		if kind == remote.PDF {
			return documentBlock{"document", source{"base64", kind, mark}, name}
		}
		return imageBlock{"image", source{"base64", kind, mark}}
	})
	out := request{Model: a.config.Model, MaxTokens: a.config.MaxTokens, System: a.config.Prompt(form.Input.Notes), Stream: true}
	for i, m := range messages {
		if text, ok := contents[i].(string); ok {
			contents[i] = strings.TrimRight(text, " \n") // the API refuses it at the end of a reply
		}
		out.say(m, contents[i])
	}
	for _, f := range tools.Functions() {
		out.Tools = append(out.Tools, function{f.Name, f.Description, f.Schema})
	}
	if out.Tools == nil && remote.UsesTools(messages) {
		out.Tools, out.ToolChoice = calledTools(messages), &toolChoice{"none"}
	}
	return out
}

// say adds a message. Results of tools and the user's words behind them are one message.
func (r *request) say(m assembly.Message, content any) {
	role, list := m.Role, []any(nil)
	switch {
	case role == assembly.RoleTool:
		role, list = assembly.RoleUser, []any{toolResult{"tool_result", m.CallID, content.(string)}} // a tool has no images
	case len(m.Calls) > 0:
		calls := make([]any, len(m.Calls))
		for i, call := range m.Calls {
			calls[i] = toolUse{"tool_use", call.ID, call.Name, json.RawMessage(call.Arguments)}
		}
		list = withThoughts(r.Model, m, blocks(content), calls)
	}
	last := len(r.Messages) - 1
	switch {
	case last >= 0 && r.Messages[last].Role == role:
		if list == nil {
			list = blocks(content)
		}
		r.Messages[last].Content = append(blocks(r.Messages[last].Content), list...)
	case list != nil:
		r.Messages = append(r.Messages, said{role, list})
	default:
		r.Messages = append(r.Messages, said{role, content})
	}
}

// blocks returns a content as a list of blocks, none of which is a blank text.
func blocks(content any) []any {
	if list, ok := content.([]any); ok {
		return list
	}
	if text := content.(string); strings.TrimSpace(text) != "" {
		return []any{remote.TextPart{Type: "text", Text: text}}
	}
	return nil
}

// calledTools returns the tools that messages call: the API takes calls only from a request that has tools.
func calledTools(messages []assembly.Message) (list []function) {
	for _, m := range messages {
		for _, call := range m.Calls {
			if !slices.ContainsFunc(list, func(f function) bool { return f.Name == call.Name }) {
				list = append(list, function{Name: call.Name, InputSchema: json.RawMessage(`{"type":"object"}`)})
			}
		}
	}
	return list
}
