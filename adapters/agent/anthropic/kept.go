package anthropic

import (
	"encoding/json"

	"parley/adapters/agent/remote"
	"parley/assembly"
)

// The API wants the thoughts before a call back with it, in their places and with their signatures.
// https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks

// kept is a block of an answer that is kept with its calls: a thought as the API takes it back, or the place of a text
// or of a call.
type kept struct {
	Type      string          `json:"type"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

func (k kept) isThought() bool { return k.Type == "thinking" || k.Type == "redacted_thinking" }

// keep notes a block that has ended.
func (m *message) keep(b *block) {
	switch b.Type {
	case "text", "tool_use":
		m.kept = append(m.kept, kept{Type: b.Type})
	case "thinking":
		said := b.said.String()
		m.kept = append(m.kept, kept{Type: b.Type, Thinking: &said, Signature: b.Signature})
	case "redacted_thinking":
		m.kept = append(m.kept, kept{Type: b.Type, Data: b.Data})
	}
}

// back returns what is kept with the calls of an answer; nil if it has no thought.
func (m *message) back() json.RawMessage {
	for _, k := range m.kept {
		if k.isThought() {
			return remote.Keep("anthropic "+m.model, m.kept)
		}
	}
	return nil
}

// withThoughts returns the blocks of an assistant's message with calls: the text and the calls, and the thoughts of the
// model that wrote them in their places.
func withThoughts(model string, m assembly.Message, texts, calls []any) (list []any) {
	var said []kept
	remote.Kept("anthropic "+model, m.Kept, &said)
	for _, k := range said {
		switch {
		case k.isThought():
			list = append(list, k)
		case k.Type == "text":
			list, texts = append(list, texts...), nil
		case len(calls) > 0:
			list, calls = append(append(list, texts...), calls[0]), calls[1:]
			texts = nil
		}
	}
	return append(append(list, texts...), calls...)
}
