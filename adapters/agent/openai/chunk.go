package openai

import (
	"cmp"
	"encoding/json"

	"parley/adapters/agent/remote"
)

// chunk is a chat.completion.chunk.
// https://platform.openai.com/docs/api-reference/chat/streaming
type chunk struct {
	Error   json.RawMessage
	Usage   json.RawMessage
	Choices []struct {
		Index int
		Delta struct {
			Content, Refusal json.RawMessage // strings, or null
			Reasoning        string
			// ReasoningContent is the name that DeepSeek, vLLM and others use.
			ReasoningContent string     `json:"reasoning_content"`
			ToolCalls        []toolCall `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
}

// toolCall is a tool call, or the next part of one.
type toolCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// maxCalls bounds the tool calls of one answer.
const maxCalls = 128

// take reads one event of the stream. Of several choices it uses the first.
func (c *completion) take(e remote.Event) error {
	if c.done = c.done || string(e.Data) == "[DONE]"; c.done {
		c.answer.Done()
		return nil
	}
	var event chunk
	if err := json.Unmarshal(e.Data, &event); err != nil {
		return c.agent.client.Invalid("the stream contains an invalid chunk", err)
	}
	if isSet(event.Error) {
		text, status := remote.ErrorText(e.Data)
		return c.agent.client.Failure("the stream reports: "+text, status)
	}
	if isSet(event.Usage) {
		c.usage = event.Usage
	}
	for _, choice := range event.Choices {
		if choice.Index != 0 {
			continue
		}
		if err := c.answer.Thought(cmp.Or(choice.Delta.ReasoningContent, choice.Delta.Reasoning)); err != nil {
			return err
		}
		for _, raw := range []json.RawMessage{choice.Delta.Content, choice.Delta.Refusal} {
			text, err := c.text.Join(raw)
			if err != nil {
				return c.agent.client.Invalid("the stream contains an invalid chunk", err)
			}
			if err := c.answer.Text(text); err != nil {
				return err
			}
		}
		c.call(choice.Delta.ToolCalls)
		if choice.FinishReason != "" {
			c.finish = c.agent.client.Clean(choice.FinishReason)
			c.answer.Done()
		}
	}
	return nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// call adds the parts of tool calls.
func (c *completion) call(parts []toolCall) {
	for _, part := range parts {
		if part.Index < 0 || part.Index >= maxCalls {
			continue
		}
		for len(c.calls) <= part.Index {
			c.calls = append(c.calls, toolCall{})
		}
		call := &c.calls[part.Index]
		call.ID = cmp.Or(call.ID, part.ID)
		call.Function.Name += part.Function.Name
		call.Function.Arguments += part.Function.Arguments
	}
}

// sayCalls emits the tool calls.
func (c *completion) sayCalls() error {
	for _, call := range c.calls {
		if err := c.answer.Say(remote.ToolCall(call.ID, call.Function.Name, call.Function.Arguments)); err != nil {
			return err
		}
	}
	return nil
}
