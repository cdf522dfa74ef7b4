package anthropic

import (
	"encoding/json"
	"maps"

	"parley/adapters/agent/remote"
)

// streamEvent is one event of a stream.
// https://docs.anthropic.com/en/docs/build-with-claude/streaming
type streamEvent struct {
	Type    string `json:"type"`
	Message struct {
		Usage map[string]json.RawMessage `json:"usage"`
	} `json:"message"`
	ContentBlock struct {
		Type string          `json:"type"` // text, thinking, tool_use, …
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Text json.RawMessage `json:"text"`
	} `json:"content_block"`
	Delta struct {
		Type        string          `json:"type"`
		Text        json.RawMessage `json:"text"`
		Thinking    string          `json:"thinking"`
		PartialJSON string          `json:"partial_json"`
		StopReason  string          `json:"stop_reason"`
	} `json:"delta"`
	Usage map[string]json.RawMessage `json:"usage"`
}

// take reads one event of the stream. It ignores events of unknown types, as the API asks
// its clients to do.
func (m *message) take(event remote.Event) error {
	if m.done {
		return nil
	}
	var e streamEvent
	if err := json.Unmarshal(event.Data, &e); err != nil {
		return m.client.Invalid("the stream contains an invalid event", err)
	}
	switch e.Type {
	case "":
		return m.client.Invalid("the stream contains an event without a type", nil)
	case "message_start":
		maps.Copy(m.usage, e.Message.Usage)
	case "content_block_start":
		return m.begin(e)
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
	case "error":
		text, _ := remote.ErrorText(event.Data)
		return m.client.Failure("the stream reports: "+text, 0)
	}
	return nil
}

// begin takes the beginning of a block. Each text block is a paragraph of its own.
func (m *message) begin(e streamEvent) error {
	switch e.ContentBlock.Type {
	case "text":
		if m.blocks++; m.blocks > 1 {
			if err := m.answer.Text("\n\n"); err != nil {
				return err
			}
		}
		return m.say(e.ContentBlock.Text)
	case "tool_use", "server_tool_use":
		m.tool = &tool{id: e.ContentBlock.ID, name: e.ContentBlock.Name}
	}
	return nil
}

func (m *message) grow(e streamEvent) error {
	switch e.Delta.Type {
	case "text_delta":
		return m.say(e.Delta.Text)
	case "thinking_delta":
		return m.answer.Thought(e.Delta.Thinking)
	case "input_json_delta":
		if m.tool != nil {
			m.tool.input.WriteString(e.Delta.PartialJSON)
		}
	}
	return nil
}

func (m *message) say(raw json.RawMessage) error {
	text, err := m.text.Join(raw)
	if err != nil {
		return m.client.Invalid("the stream contains an invalid event", err)
	}
	return m.answer.Text(text)
}

// endTool emits the tool call, if the block that ends is one.
func (m *message) endTool() error {
	t := m.tool
	if t == nil {
		return nil
	}
	m.tool, m.called = nil, t.name
	return m.answer.Say(remote.ToolCall(t.id, t.name, t.input.String()))
}
