package openai

import (
	"bytes"
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
	State   json.RawMessage `json:"base_resp"` // of MiniMax
	Choices []choice
	// Citations and SearchResults are Perplexity's sources, by the numbers of the marks in the text.
	// https://docs.perplexity.ai/api-reference/chat-completions-post
	Citations     json.RawMessage
	SearchResults json.RawMessage `json:"search_results"`
}

type choice struct {
	Index        int
	Error        json.RawMessage
	Delta        delta
	Message      delta  // whole: of a server that does not stream, or again behind its parts
	FinishReason string `json:"finish_reason"`
}

// delta is a message, or the next part of one.
type delta struct {
	Content   json.RawMessage // a string, null or a list of parts
	Refusal   json.RawMessage // a string or null
	Reasoning json.RawMessage // likewise
	// ReasoningContent is the name that DeepSeek, vLLM and others use.
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	// ReasoningDetails is a list of OpenRouter's.
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	ToolCalls        toolCalls       `json:"tool_calls"`
	// Images are pictures of OpenRouter's models, and Annotations the sources of OpenAI's.
	// https://openrouter.ai/docs/features/multimodal/image-generation, https://platform.openai.com/docs/guides/tools-web-search
	Images, Annotations json.RawMessage
}

// toolCalls are a list, or one call alone.
type toolCalls []toolCall

// UnmarshalJSON reads either.
func (t *toolCalls) UnmarshalJSON(raw []byte) error {
	if raw[0] == '{' {
		*t = make(toolCalls, 1)
		return json.Unmarshal(raw, &(*t)[0])
	}
	return json.Unmarshal(raw, (*[]toolCall)(t))
}

// toolCall is a tool call, or the next part of one.
type toolCall struct {
	Index    json.RawMessage `json:"index"` // a number; absent in many whole calls
	ID       json.RawMessage `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a string; some servers send the object
	} `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content"`
}

// take reads one event of the stream. Of several choices it uses the first. After the end of the answer, only the
// counts of tokens and further parts matter: its failures come too late.
func (c *completion) take(e remote.Event) error {
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 {
		return nil
	}
	if c.done = c.done || bytes.HasPrefix(data, []byte("[DONE]")); c.done {
		c.answer.Done()
		return nil
	}
	if content, ok := contentOf(data); ok {
		return c.say(content)
	}
	var event chunk
	err := json.Unmarshal(data, &event)
	switch ended := c.finish != ""; {
	case err != nil && (ended || remote.IsNote(e)):
		return nil
	case err != nil:
		return c.invalid(err)
	case remote.IsError(event.Error) || (len(event.Choices) == 0 || isSet(event.State)) && remote.IsFailure(data):
		if ended {
			return nil
		}
		return c.failed(data)
	}
	if isSet(event.Usage) {
		c.usage = event.Usage
	}
	c.answer.Citations(event.SearchResults, true) // they have titles
	c.answer.Citations(event.Citations, true)
	for _, choice := range event.Choices {
		if choice.Index != 0 {
			continue
		}
		if remote.IsError(choice.Error) && c.finish == "" {
			return c.failed(choice.Error)
		}
		err := c.grow(choice.Delta)
		if err == nil && choice.Delta.isEmpty() {
			err = c.whole(choice.Message)
		}
		if err != nil {
			return err
		}
		if choice.FinishReason != "" {
			c.finish = c.agent.client.Clean(choice.FinishReason)
			c.answer.Done()
		}
	}
	return nil
}

// contentOf returns the text of a chunk that brings nothing else, as nearly all chunks of an answer do; false for any other one.
func contentOf(data []byte) (content []byte, ok bool) {
	var choices []byte
	ok = remote.Members(data, func(key, value []byte) bool {
		switch string(key) {
		case "choices":
			taken := choices != nil
			choices = value
			return !taken
		case "error", "usage", "base_resp", "citations", "search_results":
			return string(value) == "null"
		}
		return remote.IsPlain(key)
	})
	var choice []byte
	ok = ok && choices != nil && remote.Elements(choices, func(value []byte) bool {
		taken := choice != nil
		choice = value
		return !taken
	})
	var delta []byte
	ok = ok && choice != nil && remote.Members(choice, func(key, value []byte) bool {
		switch string(key) {
		case "delta":
			taken := delta != nil
			delta = value
			return !taken
		case "index":
			return string(value) == "0"
		case "error", "message", "finish_reason":
			return string(value) == "null"
		}
		return remote.IsPlain(key)
	})
	ok = ok && delta != nil && remote.Members(delta, func(key, value []byte) bool {
		switch string(key) {
		case "content":
			content = value
			return value[0] == '"'
		case "refusal", "reasoning", "reasoning_content", "reasoning_details", "tool_calls", "images", "annotations":
			return string(value) == "null"
		}
		return remote.IsPlain(key)
	})
	return content, ok && content != nil
}

// say takes the text of such a chunk.
func (c *completion) say(content []byte) error {
	text, err := c.text.Join(content)
	if err != nil {
		return c.invalid(err)
	}
	c.took.text = c.took.text || text != ""
	return c.answer.Text(text)
}

func (c *completion) invalid(err error) error {
	return c.agent.client.Invalid("the stream contains an invalid chunk", err)
}

func (c *completion) failed(raw []byte) error {
	text, status := remote.ErrorText(raw)
	return c.agent.client.Failure("the stream reports: "+text, status)
}

// took has the kinds of content that the parts of a streamed message have brought.
type took struct{ text, thought, calls bool }

// whole takes a whole message. Its text replaces the text of its parts. It skips the message's reasoning and calls if the
// parts have brought them already.
func (c *completion) whole(m delta) error {
	streamed := c.took
	if streamed.thought {
		m.ReasoningContent, m.Reasoning, m.ReasoningDetails = nil, nil, nil
	}
	if streamed.calls {
		m.ToolCalls = nil
	}
	if streamed.text {
		if !m.hasText() {
			m.Content, m.Refusal = nil, nil
		} else if err := c.answer.Replace(); err != nil {
			return err
		}
		c.text = remote.Halves{}
	}
	err := c.grow(m)
	c.took = streamed
	return err
}

// isEmpty reports whether a part brings nothing.
func (d delta) isEmpty() bool {
	for _, raw := range []json.RawMessage{d.Content, d.Refusal, d.Reasoning, d.ReasoningContent, d.ReasoningDetails, d.Images, d.Annotations} {
		if isSet(raw) && string(raw) != `""` {
			return false
		}
	}
	return len(d.ToolCalls) == 0
}

// hasText reports whether a message has words of the answer.
func (d delta) hasText() bool {
	for _, raw := range []json.RawMessage{d.Content, d.Refusal} {
		parts, _ := new(remote.Halves).Parts(raw) // grow reports the error
		for _, part := range parts {
			if !part.Thought && strings.TrimSpace(part.Text) != "" {
				return true
			}
		}
	}
	return false
}

// grow takes a message or the next part of one.
func (c *completion) grow(d delta) error {
	if c.details.add(d.ReasoningDetails); c.answer.Bound(c.details.bytes) != nil {
		return c.answer.Bound(c.details.bytes)
	}
	members := []**string{&c.kept.ReasoningContent, &c.kept.Reasoning}
	for i, raw := range []json.RawMessage{d.ReasoningContent, d.Reasoning} {
		text, err := c.thought.Join(raw)
		if err != nil {
			return c.invalid(err)
		}
		keep(members[i], raw, text)
		if err := c.answer.Thought(text); err != nil {
			return err
		}
		if text != "" {
			c.took.thought = true
			break // some servers write it under both names
		}
	}
	for _, raw := range []json.RawMessage{d.Content, d.Refusal} {
		parts, err := c.text.Parts(raw)
		if err != nil {
			return c.invalid(err)
		}
		for _, part := range parts {
			if part.Text != "" {
				c.took.thought, c.took.text = c.took.thought || part.Thought, c.took.text || !part.Thought
			}
			if err := c.answer.Add(part); err != nil {
				return err
			}
		}
	}
	for _, address := range remote.PicturesOf(d.Images) {
		if err := c.answer.Picture(address); err != nil {
			return err
		}
	}
	c.answer.Citations(d.Annotations, false)
	c.took.calls = c.took.calls || len(d.ToolCalls) > 0
	return c.call(d.ToolCalls)
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// maxCalls bounds the tool calls of one answer.
const maxCalls = 128

// call is a tool call of the answer.
type call struct {
	index, id, name string
	arguments       strings.Builder
	extra           json.RawMessage // null for none
}

// call adds the parts of tool calls.
func (c *completion) call(parts []toolCall) error {
	for _, part := range parts {
		arguments, err := c.arguments.Join(part.Function.Arguments)
		if err != nil {
			arguments = string(part.Function.Arguments)
		}
		id := word(part.ID)
		call := c.callOf(word(part.Index), id, part.Function.Name, arguments)
		if call == nil {
			continue
		}
		if c.called += len(part.Function.Name) + len(arguments) + len(part.ExtraContent); c.answer.Bound(c.called) != nil {
			return c.answer.Bound(c.called)
		}
		call.id = cmp.Or(call.id, id)
		if name := part.Function.Name; strings.HasPrefix(name, call.name) { // some servers repeat it in each part
			call.name = name
		} else {
			call.name += name
		}
		call.arguments.WriteString(arguments)
		if isSet(part.ExtraContent) {
			call.extra = part.ExtraContent
		}
	}
	return nil
}

// callOf returns the call of a part; nil if it is one too many. A part belongs to the last call of its index, or of its
// id if it has no index, unless it begins another call: some servers give all calls of an answer the same index.
func (c *completion) callOf(index, id, name, arguments string) *call {
	at := len(c.calls) - 1
	switch {
	case index != "":
		for at >= 0 && c.calls[at].index != index {
			at--
		}
	case id != "" && name != "":
		for at >= 0 && c.calls[at].id != id {
			at--
		}
	case name != "":
		at = -1
	}
	if at >= 0 && !c.calls[at].isBefore(id, name, arguments) {
		return c.calls[at]
	}
	if len(c.calls) == maxCalls {
		return nil
	}
	c.calls = append(c.calls, &call{index: index})
	return c.calls[len(c.calls)-1]
}

// isBefore reports whether a part begins another call: it has a name, and its id differs from this call's. If one
// of the two ids is missing, the part's arguments must begin a new object behind the complete one of this call.
func (c *call) isBefore(id, name, arguments string) bool {
	switch {
	case name == "":
		return false
	case id != "" && c.id != "":
		return id != c.id
	}
	whole := c.arguments.String()
	return strings.HasPrefix(arguments, "{") && strings.HasSuffix(whole, "}") && json.Valid([]byte(whole))
}

// word returns the text of a text or a number; empty for an absent one.
func word(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}

// sayCalls emits the tool calls. Those without a name are none.
func (c *completion) sayCalls() error {
	for _, call := range c.calls {
		if call.name == "" {
			continue
		}
		if err := c.answer.Say(c.tools.Call(call.id, call.name, call.arguments.String())); err != nil {
			return err
		}
	}
	return nil
}
