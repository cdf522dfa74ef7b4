package assembly

import (
	"cmp"
	"strings"

	"parley/assembly/runinput"
	"parley/ingest/event"
)

// message returns the transcript's message of a line: the text, then each file. The text
// has the author's header, unless the line is ours or Parley's, or its content includes a header. Below
// the header, no line looks like the beginning of another message.
func (n naming) message(l *Line) Message {
	if l.Own {
		return Message{ID: l.ID, Role: RoleAssistant, Parts: l.parts(l.Content, false)}
	}
	if l.System {
		return Message{ID: l.ID, Role: RoleSystem, Parts: l.parts(indentImitations(l.Content), false)}
	}
	if l.Version == 0 {
		return Message{ID: l.ID, Role: RoleUser, Parts: l.parts(l.Content, false)}
	}
	said := n.attribute(l, l.typed())
	m := Message{ID: l.ID, Role: RoleUser, Parts: l.parts(indentImitations(said), false)}
	if fences := l.fences(); fences != "" {
		m.Named, m.Parts = m.Parts, l.parts(indentImitations(said+fences), true)
	}
	return m
}

// parts returns a text and the files; without those whose words are in the text, if worded is true. The words of a
// picture describe it, so the picture is given beside them.
func (l *Line) parts(text string, worded bool) []Part {
	parts := make([]Part, 0, 1+len(l.Files))
	if text != "" || len(l.Files) == 0 {
		parts = append(parts, Part{Text: text})
	}
	for _, file := range l.Files {
		if file.Words == "" || !worded || file.IsPicture() {
			parts = append(parts, Part{File: &file})
		}
	}
	return parts
}

// fences returns the words of the line's files, each in a fence that names the file. The fence is longer
// than any run of its sign in the words, so they cannot close it.
func (l *Line) fences() string {
	var b strings.Builder
	for _, file := range l.Files {
		if file.Words == "" {
			continue
		}
		fence := strings.Repeat("`", max(3, longestRun(file.Words, '`')+1))
		name := strings.ReplaceAll(clean(file.Name), "`", "'")
		b.WriteString("\n\n" + fence + " " + cmp.Or(name, "file") + "\n" + strings.TrimRight(file.Words, "\r\n") + "\n" + fence)
	}
	return b.String()
}

// longestRun returns the length of the longest run of a sign in a text.
func longestRun(text string, sign rune) (longest int) {
	n := 0
	for _, r := range text {
		if n++; r != sign {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}

// typed returns the texts that the author typed: the subject line, if there is one, and the
// content. A row of version 0 has only its content.
func (l *Line) typed() string {
	subject := strings.Join(strings.Fields(l.Metadata.Subject()), " ")
	switch {
	case subject == "", l.Version == 0:
		return l.Content
	case l.Content == "":
		return "Subject: " + subject
	}
	return "Subject: " + subject + "\n" + l.Content
}

// Text returns the message for an agent that reads only text: its text parts, each on a
// line of its own.
func (m Message) Text() string {
	texts := make([]string, 0, len(m.Parts))
	for _, part := range m.Parts {
		if part.File == nil {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// size returns the number of bytes of text in the messages.
func size(messages []Message) int {
	n := 0
	for i := range messages {
		for _, part := range messages[i].Parts {
			n += len(part.Text)
		}
		for _, call := range messages[i].Calls {
			n += len(call.Name) + len(call.Arguments)
		}
		n += len(messages[i].Kept)
	}
	return n
}

// textContent and binaryContent are the parts of a message in the replay format.
type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type binaryContent struct {
	Type     string `json:"type"`
	MimeType string `json:"mimeType"`
	Filename string `json:"filename"`
}

// MarshalJSON returns {"role","content"}, with "toolCalls" or "toolCallId" if there are any. The content is a string if the message is one
// text, and otherwise a list of {"type":"text","text"} and
// {"type":"binary","mimeType","filename"}. It does not escape <, > and &, but
// a calling encoder does if its SetEscapeHTML is on.
func (m Message) MarshalJSON() ([]byte, error) {
	return event.JSON(struct {
		Role    Role            `json:"role"`
		Content any             `json:"content"`
		Calls   []runinput.Call `json:"toolCalls,omitempty"`
		CallID  string          `json:"toolCallId,omitempty"`
	}{m.Role, m.content(), m.Calls, m.CallID})
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
