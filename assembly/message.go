package assembly

import (
	"bytes"
	"encoding/json"
	"strings"
)

// message makes a message of the transcript from a line: with its author's
// header, unless we wrote it or its row has the author baked in. The text comes
// first, then each file.
func message(l *Line) Message {
	role, text := RoleUser, l.Content
	switch {
	case l.Own:
		role = RoleAssistant
	case l.Version > 0:
		text = attribute(&l.Metadata, l.Content)
	}
	parts := make([]Part, 0, 1+len(l.Files))
	if text != "" || len(l.Files) == 0 {
		parts = append(parts, Part{Text: text})
	}
	for _, file := range l.Files {
		parts = append(parts, Part{File: &file})
	}
	return Message{Role: role, Parts: parts}
}

// Text is the message for an agent that reads nothing else: its text parts, each
// on a line of its own.
func (m Message) Text() string {
	texts := make([]string, 0, len(m.Parts))
	for _, part := range m.Parts {
		if part.File == nil {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// size is how many bytes of text the messages hold.
func size(messages []Message) int {
	n := 0
	for i := range messages {
		for _, part := range messages[i].Parts {
			n += len(part.Text)
		}
	}
	return n
}

// textContent and binaryContent are the parts of a message as replay shows them.
type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type binaryContent struct {
	Type     string `json:"type"`
	MimeType string `json:"mimeType"`
	Filename string `json:"filename"`
}

// MarshalJSON writes {"role","content"}: content is a string where a text is all
// there is, else a list of {"type":"text","text"} and
// {"type":"binary","mimeType","filename"}. <, > and & stand as they are, provided
// that the encoder which asks for it lets them.
func (m Message) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		Role    Role `json:"role"`
		Content any  `json:"content"`
	}{m.Role, m.content()})
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

func (m Message) content() any {
	if len(m.Parts) == 1 && m.Parts[0].File == nil {
		return m.Parts[0].Text
	}
	list := make([]any, len(m.Parts))
	for i, part := range m.Parts {
		if part.File == nil {
			list[i] = textContent{"text", part.Text}
		} else {
			list[i] = binaryContent{"binary", part.File.MimeType, part.File.Name}
		}
	}
	return list
}
