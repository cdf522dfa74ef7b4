// Package runinput is the body of a run of the agent run protocol: RunAgentInput, its rules
// and its block of tools. A server of the protocol checks what it gets, and a client checks
// what it sends.
package runinput

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"parley/ingest/event"
)

// The limits of the protocol.
const (
	MaxBytes    = 256 << 10 // of the whole body
	maxRunID    = 128       // characters
	maxMessages = 200
	maxText     = 10_000 // characters of the user message's text, all blocks together
)

// Input is a RunAgentInput. A raw field is nil if it is absent, and "null" if it is null.
type Input struct {
	ThreadID       string          `json:"threadId"`
	RunID          string          `json:"runId"`
	ParentRunID    string          `json:"parentRunId,omitempty"`
	State          json.RawMessage `json:"state,omitempty"`
	Messages       []Message       `json:"messages"`
	Tools          []Tool          `json:"tools"`
	Context        []Context       `json:"context"`
	ForwardedProps json.RawMessage `json:"forwardedProps,omitempty"`
}

// Message is one message.
type Message struct {
	ID      string  `json:"id"`
	Role    string  `json:"role"`
	Content Content `json:"content"`
	// More are further members, such as encryptedValue. Raw, if it is not nil, is the whole
	// message instead, as a client sent it. Read sets neither.
	More []event.Extra   `json:"-"`
	Raw  json.RawMessage `json:"-"`
}

// MarshalJSON returns the message with its further members.
func (m Message) MarshalJSON() ([]byte, error) {
	if m.Raw != nil {
		return m.Raw, nil
	}
	type plain Message
	raw, err := json.Marshal(plain(m))
	if err != nil {
		return nil, err
	}
	return With(raw, m.More), nil
}

// Content is a text, or a list of blocks.
type Content struct {
	Text   string
	Blocks []Block // nil for a text
}

// Block is a block of a content: a text, or a file at a signed URL.
type Block struct {
	Type     string  `json:"type"`           // text or binary
	Text     string  `json:"text,omitempty"` // always written for a text
	MimeType string  `json:"mimeType,omitempty"`
	URL      string  `json:"url,omitempty"`
	Data     *string `json:"data,omitempty"`
	ID       string  `json:"id,omitempty"`
	Filename string  `json:"filename,omitempty"`
}

// MarshalJSON returns the block. A text block has its text, also an empty one.
func (b Block) MarshalJSON() ([]byte, error) {
	type plain Block
	if b.Type != "text" || b.Text != "" {
		return json.Marshal(plain(b))
	}
	return json.Marshal(struct {
		plain
		Text string `json:"text"`
	}{plain(b), ""})
}

// Tool is a tool that the agent may call. The schema keeps the order of its keys.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	// Server is the host of the server of the Model Context Protocol whose tool it is; empty for another one.
	Server string `json:"-"`
}

// Context is a fact beside the messages.
type Context struct {
	Description string `json:"description"`
	Value       string `json:"value"`
}

// MarshalJSON returns a string or a list.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Blocks != nil {
		return json.Marshal(c.Blocks)
	}
	return json.Marshal(c.Text)
}

// Fault is a broken rule. Its text is the protocol's.
type Fault string

// Error returns the text.
func (f Fault) Error() string { return string(f) }

// The faults, in the order of the protocol's table.
const (
	TooLarge      Fault = "RunAgentInput payload exceeds size limit"
	NoThread      Fault = "threadId must be a valid UUID"
	LongRunID     Fault = "runId exceeds length limit"
	ManyMessages  Fault = "RunAgentInput.messages exceeds limit"
	LongText      Fault = "RunAgentInput user message text exceeds limit"
	NotOneUser    Fault = "RunAgentInput.messages must contain exactly one user message"
	NotUserFirst  Fault = "RunAgentInput.messages[0].role must be user"
	NoImage       Fault = "binary content requires image mimeType"
	NoURL         Fault = "binary content requires url"
	DataForbidden Fault = "binary content data is not allowed"
)

// Check returns the first broken rule of a body of this many bytes, in the order of the
// protocol's table, or nil.
func (in *Input) Check(size int) error {
	users, text := 0, 0
	for _, m := range in.Messages {
		if m.Role == "user" {
			users++
			text = max(text, m.Content.length())
		}
	}
	_, err := uuid.Parse(in.ThreadID)
	switch {
	case size > MaxBytes:
		return TooLarge
	case err != nil || len(in.ThreadID) != len(uuid.Nil.String()): // no braces and no urn
		return NoThread
	case utf8.RuneCountInString(in.RunID) > maxRunID:
		return LongRunID
	case len(in.Messages) > maxMessages:
		return ManyMessages
	case text > maxText:
		return LongText
	case users != 1:
		return NotOneUser
	case in.Messages[0].Role != "user":
		return NotUserFirst
	}
	return checkBlocks(in.Messages[0].Content.Blocks)
}

func checkBlocks(blocks []Block) error {
	for _, rule := range []struct {
		broken func(Block) bool
		fault  Fault
	}{
		{func(b Block) bool { return !strings.HasPrefix(b.MimeType, "image/") }, NoImage},
		{func(b Block) bool { return b.URL == "" }, NoURL},
		{func(b Block) bool { return b.Data != nil }, DataForbidden},
	} {
		for _, b := range blocks {
			if b.Type == "binary" && rule.broken(b) {
				return rule.fault
			}
		}
	}
	return nil
}

// length returns the number of characters of the text.
func (c Content) length() int {
	n := utf8.RuneCountInString(c.Text)
	for _, b := range c.Blocks {
		n += utf8.RuneCountInString(b.Text)
	}
	return n
}
