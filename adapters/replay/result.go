package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"parley/assembly"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// Result is the printed result of one envelope.
type Result struct {
	N           int                `json:"n"`
	Disposition event.Disposition  `json:"disposition"`
	Kind        event.Kind         `json:"kind"`
	Trigger     messages.Trigger   `json:"trigger"`
	Reason      string             `json:"reason,omitempty"`
	Error       string             `json:"error,omitempty"`
	Thread      event.ThreadKey    `json:"thread,omitempty"`
	Message     *messages.View     `json:"message,omitempty"`
	Reaction    *event.Reaction    `json:"reaction,omitempty"` // of kind reaction, if it was applied
	Assembled   []assembly.Message `json:"assembled,omitempty"`
	Replies     []Reply            `json:"replies,omitempty"`
}

// Reply is one post that the agent would have made on the platform.
type Reply struct {
	Op     string          `json:"op"` // post
	Thread event.ThreadKey `json:"thread"`
	Text   string          `json:"text"` // the agent's text before conversion
}

// WriteJSON writes the result as one line of JSON.
func (f *Result) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(f)
}

// WriteText writes the result for people.
func (f *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d  %s %s", f.N, f.Disposition, f.Kind)
	if f.Trigger != messages.TriggerNone {
		fmt.Fprintf(&b, ", %s", f.Trigger)
	}
	if f.Reason != "" {
		fmt.Fprintf(&b, " (%s)", Visible(f.Reason))
	}
	if f.Error != "" {
		fmt.Fprintf(&b, ": %s", Visible(f.Error))
	}
	if f.Thread != "" {
		fmt.Fprintf(&b, "  in %s", Visible(string(f.Thread)))
	}
	b.WriteByte('\n')
	if f.Message != nil {
		indent(&b, fmt.Sprintf("message %s, thread_seq %d", f.Message.ID, f.Message.ThreadSeq), f.Message.Content)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return WriteAnswer(w, f.Assembled, f.Replies)
}

// WriteAnswer writes an agent's input and its replies for people.
func WriteAnswer(w io.Writer, assembled []assembly.Message, replies []Reply) error {
	var b strings.Builder
	for _, m := range assembled {
		indent(&b, string(m.Role), m.Text())
	}
	for _, r := range replies {
		indent(&b, "reply to "+string(r.Thread), r.Text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// indent writes a titled text. It indents the lines, so that none looks like a result.
func indent(b *strings.Builder, title, text string) {
	fmt.Fprintf(b, "     %s\n", Visible(title))
	for line := range strings.Lines(text) {
		fmt.Fprintf(b, "       | %s\n", Visible(strings.TrimRight(line, "\r\n")))
	}
}

// Visible escapes the characters that move a terminal's cursor or change the order of its
// text, so that a stranger's text cannot look like Parley's output. Every command uses it for the
// text that it shows on a terminal.
func Visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
