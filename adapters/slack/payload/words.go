package payload

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"parley/adapters/words"
	"parley/ingest/event"
)

// A message's words are the text that its author typed, and the tables that the author pasted beside it. The words
// of a message without a typed text are its visible blocks, or else its visible attachments. The methods of
// this file find them for every reader: of events, edits, history, quotations and forwards.

// instead are Slack's own texts of a message, or fallbacks of an attachment, that an app gave blocks alone.
var instead = []string{"This content can't be displayed.", "This message contains interactive elements.", "[no preview available]"}

// content returns the words of the message.
func (m *Message) content() string {
	if !m.isTyped() {
		if shown := m.shown().String(); shown != "" {
			return shown
		}
		return decode(m.Text)
	}
	text := decode(m.Text)
	if pasted := m.pasted(); pasted != "" {
		return strings.TrimRight(text, "\n") + "\n" + pasted
	}
	return text
}

// pasted returns the tables that a person pasted beside the typed text; empty for none. Slack has them in an
// attachment, or among the blocks. The blocks of an app repeat its text.
func (m *Message) pasted() string {
	if m.isBot() {
		return ""
	}
	var v visible
	v.tables(m.Blocks)
	for _, a := range attachments(m.Attachments) {
		if !a.IsShare && !a.isUnfurl() {
			v.tables(a.Blocks)
		}
	}
	return v.String()
}

// encoded returns the words in Slack's encoding, where a mention differs from a typed text that
// looks like one. A mention in a block beside a typed text is part of it.
func (m *Message) encoded() string {
	if m.isTyped() && (mentionsAnyone(m.Text) || !mayMention(m.Blocks)) {
		return m.Text
	}
	return m.Text + m.shown().encoded.String()
}

// isTyped reports whether the message has a typed text.
func (m *Message) isTyped() bool { return hasWords(m.Text) }

// hasWords reports whether a text is more than the white space that apps send with their blocks, and not
// Slack's own.
func hasWords(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && !slices.Contains(instead, text)
}

// shown returns the visible texts of the message beside its typed text.
func (m *Message) shown() *visible {
	if m.visible == nil {
		v := new(visible)
		v.blocks(m.Blocks)
		if v.isEmpty() && !m.isTyped() {
			v.attachments(m.Attachments, 1)
		}
		if v.isEmpty() && !m.isTyped() {
			v.pictures(m.Blocks)
		}
		m.visible = v
	}
	return m.visible
}

// mayMention reports whether blocks may mention a user.
func mayMention(blocks json.RawMessage) bool {
	return bytes.Contains(blocks, []byte("user_id")) || bytes.Contains(blocks, []byte("<@")) || bytes.Contains(blocks, []byte(`\u003c@`))
}

// visible collects the visible texts of a message, decoded and in Slack's encoding.
type visible struct {
	words.Builder
	encoded strings.Builder
	files   []File // of the attachments
}

func (v *visible) isEmpty() bool { return v.encoded.Len() == 0 }

// line adds a text in Slack's encoding on a line of its own. It skips a text without words.
func (v *visible) line(encoded string) {
	if strings.TrimSpace(encoded) == "" || v.Full() {
		return
	}
	v.Line(decode(encoded))
	v.encoded.WriteString(encoded)
	v.encoded.WriteByte('\n')
}

// attachments adds the texts of an app's attachments. Slack adds unfurled links and forwarded
// messages to the attachments of any message; they are not its words.
func (v *visible) attachments(raw json.RawMessage, level int) {
	for _, a := range attachments(raw) {
		if !a.IsShare && !a.isUnfurl() {
			v.attachment(&a, level)
		}
	}
}

// attachment adds the texts of one attachment: an app's, or a forwarded message, whose blocks repeat
// its text. It adds the fallback if there is no other text.
func (v *visible) attachment(a *wireAttachment, level int) {
	if level > words.MaxLevels {
		return
	}
	before := v.encoded.Len()
	v.line(a.Pretext)
	v.line(a.Title)
	if hasWords(a.Text) {
		v.line(a.Text)
	}
	for _, field := range a.Fields {
		v.field(string(field.Title), string(field.Value))
	}
	if !a.showsMessage() || !hasWords(a.Text) {
		v.blocks(a.Blocks)
		v.blocks(a.MessageBlocks)
	} else {
		v.tables(a.Blocks)
		v.tables(a.MessageBlocks)
	}
	v.files = append(v.files, a.Files...)
	v.nested(a, level+1)
	if v.encoded.Len() == before && hasWords(a.Fallback) && !(a.showsMessage() && len(a.Files) > 0) {
		v.line(a.Fallback)
	}
}

// nested adds the attachments of an attachment. Those of a forwarded message may be forwarded too.
func (v *visible) nested(a *wireAttachment, level int) {
	for _, inner := range attachments(a.Attachments) {
		if !inner.isUnfurl() || inner.showsMessage() {
			v.attachment(&inner, level)
		}
	}
}

// field adds a named value in Slack's encoding.
func (v *visible) field(name, value string) {
	if v.Full() {
		return
	}
	if strings.TrimSpace(name) != "" && strings.TrimSpace(value) != "" {
		name += ": "
	}
	v.line(name + value)
}

// isUnfurl reports whether Slack made the attachment of a link in the message.
func (a *wireAttachment) isUnfurl() bool {
	return a.FromURL != "" || a.OriginalURL != "" || a.IsMessageUnfurl || a.IsAppUnfurl
}

// showsMessage reports whether the attachment is a message: a forwarded one, or one whose permalink is in the text.
func (a wireAttachment) showsMessage() bool { return a.IsShare || a.IsMessageUnfurl }

// attachments decodes attachments as far as possible, because apps may put anything
// into them.
func attachments(raw json.RawMessage) []wireAttachment {
	var list []wireAttachment
	_ = json.Unmarshal(raw, &list) // none without attachments
	return list
}

// shownText is a text that an app may also give as a number or as true or false.
type shownText string

// UnmarshalJSON reads a scalar as a person sees it. Any other value has no text.
func (s *shownText) UnmarshalJSON(raw []byte) error {
	var text string
	switch {
	case json.Unmarshal(raw, &text) == nil:
		*s = shownText(text)
	case !IsObject(raw) && !bytes.HasPrefix(raw, []byte("[")):
		*s = shownText(event.Text(string(raw)))
	}
	return nil
}
