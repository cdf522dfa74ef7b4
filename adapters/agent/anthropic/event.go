package anthropic

import (
	"encoding/json"
	"maps"

	"parley/adapters/agent/remote"
)

// streamEvent is one event of a stream.
// https://docs.anthropic.com/en/docs/build-with-claude/streaming
type streamEvent struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"`
	// Content, StopReason and Usage are those of a whole message, for a server that does not stream.
	Content      json.RawMessage `json:"content"`
	StopReason   string          `json:"stop_reason"`
	ContentBlock contentBlock    `json:"content_block"`
	Delta        struct {
		Type        string          `json:"type"`
		Text        json.RawMessage `json:"text"`
		Thinking    json.RawMessage `json:"thinking"`
		PartialJSON string          `json:"partial_json"`
		StopReason  string          `json:"stop_reason"`
	} `json:"delta"`
	Usage map[string]json.RawMessage `json:"usage"`
}

type contentBlock struct {
	Type     string          `json:"type"` // text, thinking, tool_use, …
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Text     json.RawMessage `json:"text"`
	Thinking json.RawMessage `json:"thinking"`
	Input    json.RawMessage `json:"input"`
}

// take reads one event of the stream. It ignores events of unknown types, as the API asks
// its clients to do.
func (m *message) take(event remote.Event) error {
	if m.done {
		return nil
	}
	var e streamEvent
	if err := json.Unmarshal(event.Data, &e); err != nil {
		return m.invalid(err)
	}
	if e.Type == "error" || remote.IsError(e.Error) || e.Type == "" && remote.IsFailure(event.Data) {
		text, status := remote.ErrorText(event.Data)
		return m.client.Failure("the stream reports: "+text, status)
	}
	switch e.Type {
	case "":
		return m.client.Invalid("the stream contains an event without a type", nil)
	case "message":
		return m.whole(e)
	case "message_start":
		var start struct{ Usage map[string]json.RawMessage }
		if err := json.Unmarshal(e.Message, &start); len(e.Message) > 0 && err != nil {
			return m.invalid(err)
		}
		maps.Copy(m.usage, start.Usage)
	case "content_block_start":
		return m.begin(e.ContentBlock)
	case "content_block_delta":
		return m.grow(e)
	case "content_block_stop":
		return m.endTool()
	case "message_delta":
		m.stop = m.client.Clean(e.Delta.StopReason)
		maps.Copy(m.usage, e.Usage)
	case "message_stop":
		m.done = true
		m.answer.Done()
	}
	return nil
}

func (m *message) invalid(err error) error {
	return m.client.Invalid("the stream contains an invalid event", err)
}

// whole takes a message that is not streamed.
func (m *message) whole(e streamEvent) error {
	var blocks []contentBlock
	if err := json.Unmarshal(e.Content, &blocks); err != nil { // some servers write a string
		blocks = []contentBlock{{Type: "text", Text: e.Content}}
	}
	for _, block := range blocks {
		if err := m.begin(block); err != nil {
			return err
		}
		if m.tool != nil {
			m.tool.input.Write(block.Input)
		}
		if err := m.endTool(); err != nil {
			return err
		}
	}
	m.stop = m.client.Clean(e.StopReason)
	maps.Copy(m.usage, e.Usage)
	return nil
}

// begin takes the beginning of a block. Citations cut a text into blocks, so neighbouring ones are one
// text; a text behind a block of another kind is a paragraph of its own.
func (m *message) begin(block contentBlock) error {
	if block.Type != "text" {
		m.apart = true
	} else if m.apart {
		m.apart = false
		if err := m.answer.Part(); err != nil {
			return err
		}
	}
	switch block.Type {
	case "text":
		return m.say(block.Text)
	case "thinking":
		return m.think(block.Thinking)
	case "tool_use", "server_tool_use":
		m.tool = &tool{id: block.ID, name: block.Name}
	}
	return nil
}

func (m *message) grow(e streamEvent) error {
	switch e.Delta.Type {
	case "text_delta":
		return m.say(e.Delta.Text)
	case "thinking_delta":
		return m.think(e.Delta.Thinking)
	case "input_json_delta":
		if m.tool != nil {
			m.tool.input.WriteString(e.Delta.PartialJSON)
			return m.answer.Bound(m.tool.input.Len())
		}
	}
	return nil
}

func (m *message) think(raw json.RawMessage) error {
	text, err := m.thought.Join(raw)
	if err != nil {
		return m.invalid(err)
	}
	return m.answer.Thought(text)
}

func (m *message) say(raw json.RawMessage) error {
	text, err := m.text.Join(raw)
	if err != nil {
		return m.invalid(err)
	}
	return m.answer.Text(text)
}

// endTool emits the tool call, if the block that ends is one.
func (m *message) endTool() error {
	t := m.tool
	if t == nil {
		return nil
	}
	m.tool = nil
	return m.answer.Say(m.tools.Call(t.id, t.name, t.input.String()))
}
