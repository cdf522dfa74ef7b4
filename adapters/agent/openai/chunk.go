package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"parley/adapters/agent/remote"
)

// chunk is a chat.completion.chunk, or the chat.completion of a server that does not stream.
// https://platform.openai.com/docs/api-reference/chat/streaming
type chunk struct {
	Error   json.RawMessage
	Usage   json.RawMessage
	Choices []choice
}

type choice struct {
	Index        int
	Error        json.RawMessage
	Delta        delta
	Message      delta  // instead of Delta, if the server does not stream
	FinishReason string `json:"finish_reason"`
}

// delta is a message, or the next part of one.
type delta struct {
	Content   json.RawMessage // a string, null or a list of parts
	Refusal   json.RawMessage // a string or null
	Reasoning json.RawMessage // likewise
	// ReasoningContent is the name that DeepSeek, vLLM and others use.
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	ToolCalls        []toolCall      `json:"tool_calls"`
}

// toolCall is a tool call, or the next part of one.
type toolCall struct {
	Index    *int   `json:"index"` // nil: it is whole
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a string; some servers send the object
	} `json:"function"`
}

// take reads one event of the stream. Of several choices it uses the first.
func (c *completion) take(e remote.Event) error {
	if c.done = c.done || string(e.Data) == "[DONE]"; c.done {
		c.answer.Done()
		return nil
	}
	var event chunk
	if err := json.Unmarshal(e.Data, &event); err != nil {
		return c.invalid(err)
	}
	if remote.IsError(event.Error) || len(event.Choices) == 0 && remote.IsFailure(e.Data) {
		return c.failed(e.Data)
	}
	if isSet(event.Usage) {
		c.usage = event.Usage
	}
	for _, choice := range event.Choices {
		if choice.Index != 0 {
			continue
		}
		if remote.IsError(choice.Error) {
			return c.failed(choice.Error)
		}
		for _, d := range []delta{choice.Delta, choice.Message} {
			if err := c.grow(d); err != nil {
				return err
			}
		}
		if choice.FinishReason != "" {
			c.finish = c.agent.client.Clean(choice.FinishReason)
			c.answer.Done()
		}
	}
	return nil
}

func (c *completion) invalid(err error) error {
	return c.agent.client.Invalid("the stream contains an invalid chunk", err)
}

func (c *completion) failed(raw []byte) error {
	text, status := remote.ErrorText(raw)
	return c.agent.client.Failure("the stream reports: "+text, status)
}

// grow takes a message or the next part of one.
func (c *completion) grow(d delta) error {
	for _, raw := range []json.RawMessage{d.ReasoningContent, d.Reasoning} {
		text, err := c.thought.Join(raw)
		if err != nil {
			return c.invalid(err)
		}
		if err := c.answer.Thought(text); err != nil {
			return err
		}
		if text != "" {
			break // some servers write it under both names
		}
	}
	for _, raw := range []json.RawMessage{d.Content, d.Refusal} {
		parts, err := c.text.Parts(raw)
		if err != nil {
			return c.invalid(err)
		}
		for _, part := range parts {
			if err := c.answer.Add(part); err != nil {
				return err
			}
		}
	}
	return c.call(d.ToolCalls)
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// maxCalls bounds the tool calls of one answer.
const maxCalls = 128

// call is a tool call of the answer.
type call struct {
	id              string
	name, arguments strings.Builder
}

// call adds the parts of tool calls.
func (c *completion) call(parts []toolCall) error {
	for _, part := range parts {
		call := c.callOf(part)
		if call == nil {
			continue
		}
		arguments, err := c.arguments.Join(part.Function.Arguments)
		if err != nil {
			arguments = string(part.Function.Arguments)
		}
		if c.called += len(part.Function.Name) + len(arguments); c.answer.Bound(c.called) != nil {
			return c.answer.Bound(c.called)
		}
		call.id = cmp.Or(call.id, part.ID)
		call.name.WriteString(part.Function.Name)
		call.arguments.WriteString(arguments)
	}
	return nil
}

// callOf returns the call of a part; nil if it is one too many. A part without an index begins a call,
// if it has a name.
func (c *completion) callOf(part toolCall) *call {
	index := max(0, len(c.calls)-1)
	switch {
	case part.Index != nil:
		index = *part.Index
	case part.Function.Name != "":
		index = len(c.calls)
	}
	if index < 0 || index >= maxCalls {
		return nil
	}
	for len(c.calls) <= index {
		c.calls = append(c.calls, new(call))
	}
	return c.calls[index]
}

// sayCalls emits the tool calls.
func (c *completion) sayCalls() error {
	for _, call := range c.calls {
		if err := c.answer.Say(c.tools.Call(call.id, call.name.String(), call.arguments.String())); err != nil {
			return err
		}
	}
	return nil
}
