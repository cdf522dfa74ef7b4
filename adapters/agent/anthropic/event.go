package anthropic

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

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
		Signature   string          `json:"signature"`
		PartialJSON string          `json:"partial_json"`
		StopReason  string          `json:"stop_reason"`
		Citation    json.RawMessage `json:"citation"`
	} `json:"delta"`
	Usage map[string]json.RawMessage `json:"usage"`
}

type contentBlock struct {
	Type string          `json:"type"` // text, thinking, tool_use, …
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Text json.RawMessage `json:"text"`
	// Citations are the sources of a text: https://docs.anthropic.com/en/docs/build-with-claude/citations
	Citations json.RawMessage `json:"citations"`
	Thinking  json.RawMessage `json:"thinking"`
	// Signature belongs to a thought, and Data is a hidden thought. The API wants both back.
	Signature string          `json:"signature"`
	Data      json.RawMessage `json:"data"`
	Input     json.RawMessage `json:"input"`
}

// take reads one event of the stream. It ignores events of unknown types, as the API asks
// its clients to do.
func (m *message) take(event remote.Event) error {
	if m.done {
		return nil
	}
	if len(bytes.TrimSpace(event.Data)) == 0 {
		return nil
	}
	if text, ok := textOf(event.Data); ok {
		return m.say(text)
	}
	var e streamEvent
	err := json.Unmarshal(event.Data, &e)
	switch ended := m.stop != ""; {
	case err != nil && (ended || remote.IsNote(event)):
		return nil
	case err != nil:
		return m.invalid(err)
	case e.Type == "error" || remote.IsError(e.Error) || e.Type == "" && remote.IsFailure(event.Data):
		if ended {
			return nil
		}
		text, status := remote.ErrorText(event.Data)
		return m.client.Failure("the stream reports: "+text, status)
	}
	switch e.Type {
	case "":
		if m.stop != "" {
			return nil
		}
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
		return m.endBlock()
	case "message_delta":
		maps.Copy(m.usage, e.Usage)
		m.stopped(e.Delta.StopReason)
	case "message_stop":
		m.done = true
		m.answer.Done()
	}
	return nil
}

// textOf returns the text of an event that brings nothing else, as nearly all events of an answer do; false for any other one.
func textOf(data []byte) (text []byte, ok bool) {
	var delta []byte
	isDelta, isText := false, false
	ok = remote.Members(data, func(key, value []byte) bool {
		switch string(key) {
		case "type":
			isDelta = string(value) == `"content_block_delta"`
			return isDelta
		case "delta":
			taken := delta != nil
			delta = value
			return !taken
		case "error", "message", "content", "stop_reason", "content_block", "usage":
			return string(value) == "null"
		}
		return remote.IsPlain(key)
	})
	ok = ok && isDelta && delta != nil && remote.Members(delta, func(key, value []byte) bool {
		switch string(key) {
		case "type":
			isText = string(value) == `"text_delta"`
			return isText
		case "text":
			text = value
			return value[0] == '"'
		case "thinking", "signature", "partial_json", "stop_reason", "citation":
			return string(value) == "null"
		}
		return remote.IsPlain(key)
	})
	return text, ok && isText && text != nil
}

func (m *message) invalid(err error) error {
	return m.client.Invalid("the stream contains an invalid event", err)
}

// whole takes a message that is not streamed, or that a server repeats behind its blocks. Its text
// replaces the text of the blocks. It skips each other kind of content that the blocks have brought already.
func (m *message) whole(e streamEvent) error {
	var blocks []contentBlock
	if err := json.Unmarshal(e.Content, &blocks); err != nil { // some servers write a string
		blocks = []contentBlock{{Type: "text", Text: e.Content}}
	}
	if err := m.endBlock(); err != nil {
		return err
	}
	streamed := slices.Clone(m.took)
	if slices.Contains(streamed, "text") && slices.ContainsFunc(blocks, contentBlock.hasText) {
		if err := m.answer.Replace(); err != nil {
			return err
		}
		m.apart, streamed = false, slices.DeleteFunc(streamed, func(kind string) bool { return kind == "text" })
	}
	for _, block := range blocks {
		if slices.Contains(streamed, block.Type) {
			continue
		}
		if err := m.begin(block); err != nil {
			return err
		}
		if err := m.endBlock(); err != nil {
			return err
		}
	}
	maps.Copy(m.usage, e.Usage)
	m.stopped(e.StopReason)
	return nil
}

func (b contentBlock) hasText() bool {
	return b.Type == "text" && strings.TrimSpace(words(b.Text)) != ""
}

// stopped takes the reason of the end, behind which only the end mark and the counts of tokens come.
func (m *message) stopped(reason string) {
	if reason != "" {
		m.stop = m.client.Clean(reason)
		m.answer.Done()
	}
}

// block is the block that is being written.
type block struct {
	contentBlock
	begun string          // the words of its start, which the first delta of some servers repeats
	said  strings.Builder // the thought, or the input of the tool
}

// begin takes the beginning of a block. Citations cut a text into blocks, so neighbouring ones are one
// text; a text behind a block of another kind is a paragraph of its own.
func (m *message) begin(begun contentBlock) error {
	if err := m.endBlock(); err != nil {
		return err
	}
	m.block = &block{contentBlock: begun}
	if begun.Type != "text" {
		m.apart = true
	} else if m.apart {
		m.apart = false
		if err := m.answer.Part(); err != nil {
			return err
		}
	}
	var err error
	switch begun.Type {
	case "text":
		m.answer.Citations(begun.Citations, false)
		err = m.say(begun.Text)
		m.block.begun = words(begun.Text)
	case "thinking":
		err = m.think(begun.Thinking)
		m.block.begun = words(begun.Thinking)
	}
	return err
}

// words returns the text of a JSON string; an empty one for any other value.
func words(raw json.RawMessage) string {
	text, _ := new(remote.Halves).Join(raw)
	return text
}

func (m *message) grow(e streamEvent) error {
	switch e.Delta.Type {
	case "citations_delta":
		m.answer.Citations(slices.Concat([]byte("["), e.Delta.Citation, []byte("]")), false)
	case "text_delta":
		return m.say(e.Delta.Text)
	case "thinking_delta":
		return m.think(e.Delta.Thinking)
	case "signature_delta":
		if m.block != nil {
			m.block.Signature += e.Delta.Signature
			return m.bound(len(e.Delta.Signature))
		}
	case "input_json_delta":
		if m.block != nil {
			m.block.said.WriteString(e.Delta.PartialJSON)
			return m.bound(len(e.Delta.PartialJSON))
		}
	}
	return nil
}

func (m *message) think(raw json.RawMessage) error {
	text, err := m.thought.Join(raw)
	if err != nil {
		return m.invalid(err)
	}
	if text = m.fresh(text); text == "" {
		return nil
	}
	m.note("thinking")
	if m.block != nil {
		m.block.said.WriteString(text)
	}
	return m.answer.Thought(text)
}

func (m *message) say(raw json.RawMessage) error {
	text, err := m.text.Join(raw)
	if err != nil {
		return m.invalid(err)
	}
	if text = m.fresh(text); text == "" {
		return nil
	}
	m.note("text")
	return m.answer.Text(text)
}

// note notes that a block of a type has brought something.
func (m *message) note(kind string) {
	if !slices.Contains(m.took, kind) {
		m.took = append(m.took, kind)
	}
}

// fresh returns words of the current block; none if they are the first ones behind its start and repeat it.
func (m *message) fresh(text string) string {
	if m.block == nil || text == "" {
		return text
	}
	begun := m.block.begun
	if m.block.begun = ""; text == begun {
		return ""
	}
	return text
}

// endBlock ends the current block. The call of a tool that the server itself has run is only told.
func (m *message) endBlock() error {
	b := m.block
	if b == nil {
		return nil
	}
	m.block = nil
	m.keep(b)
	if b.Type != "tool_use" && b.Type != "server_tool_use" {
		return nil
	}
	m.note(b.Type)
	input := b.said.String()
	if input == "" {
		input = string(b.Input)
	}
	if b.Type == "server_tool_use" {
		return m.answer.Say(remote.ToolCall(b.ID, b.Name, input))
	}
	return m.answer.Say(m.tools.Call(b.ID, b.Name, input))
}
