package assembly

import (
	"fmt"
	"strings"

	"parley/ingest/event"
)

// blockHead is the first line of a block that is built here.
const blockHead = "[Thread context — prior messages in this thread, newest last]"

// forwarded begins the label of what was passed on, from outside the thread.
const forwarded = "(forwarded)"

// maxSupplied is how many bytes of an integration's own block are kept.
const maxSupplied = 16 << 10

// block builds the thread context of one turn.
type block struct {
	agent string
	// held are the external ids of what the agent sees anyway; a quotation of
	// one is not repeated, and one that is written becomes held.
	held map[string]bool
	text strings.Builder
}

// build returns the block's text; empty where there is nothing to show.
func (b *block) build(t *view) string {
	if t.supplied != "" {
		return t.supplied
	}
	if t.OpenedOn != nil {
		b.line(t.OpenedOn)
	}
	if t.Root != nil {
		b.line(t.Root)
	}
	b.gap(t)
	for i := range t.Context {
		b.line(&t.Context[i])
	}
	for i := range t.Messages {
		b.quoted(&t.Messages[i])
		b.forwarded(&t.Messages[i])
	}
	return b.text.String()
}

// line writes a message with what stands inside it.
func (b *block) line(l *Line) {
	b.quoted(l)
	name := ""
	switch {
	case l.Own:
		name = b.agent
	case l.Version > 0:
		name = b.person(&l.Metadata)
	}
	b.write(name, l.Content, len(l.Files))
	b.forwarded(l)
}

func (b *block) quoted(l *Line) {
	q := l.Quoted
	if q == nil || q.ExternalID != "" && b.held[q.ExternalID] {
		return
	}
	name := b.agent
	if !q.Own {
		name = b.person(quotee(l, q))
	}
	b.write(name, q.Content, q.Files)
	b.held[q.ExternalID] = true
}

func (b *block) forwarded(l *Line) {
	for i := range l.Forwarded {
		q := &l.Forwarded[i]
		name := forwarded
		switch {
		case q.Own:
			name += " " + b.agent
		case q.Name != "" || q.SenderID != "":
			name += " " + b.person(quotee(l, q))
		}
		b.write(name, q.Content, q.Files)
	}
}

// quotee is the author of a quotation, in the terms of the message it stands in.
func quotee(l *Line, q *event.Quote) *event.Metadata {
	return &event.Metadata{
		Source:            l.Metadata.Source,
		SenderID:          q.SenderID,
		SenderDisplayName: q.Name,
		MentionToken:      q.MentionToken,
	}
}

// person labels somebody else's line. A label ends at its first ": ", so none
// holds one; and whoever calls himself what only we may write goes by his id.
func (b *block) person(author *event.Metadata) string {
	name := label(author)
	if strings.EqualFold(name, b.agent) || strings.HasPrefix(name, forwarded) {
		nameless := *author
		nameless.SenderDisplayName = ""
		name = label(&nameless)
	}
	return strings.ReplaceAll(name, ": ", "; ")
}

// write adds a line, unless there is nothing to show. A row that has its author
// baked in has no name.
func (b *block) write(name, content string, files int) {
	text := excerpt(content)
	if text == "" {
		text = fileCount(files)
	}
	if text == "" {
		return
	}
	b.begin()
	if name != "" {
		b.text.WriteString(name)
		b.text.WriteString(": ")
	}
	writeIndented(&b.text, text)
}

// gap says how many messages are left out, or that nobody knows.
func (b *block) gap(t *view) {
	switch {
	case t.Gap:
		b.begin()
		b.text.WriteString("… (earlier messages could not be read)")
	case t.Earlier == 1:
		b.begin()
		b.text.WriteString("… (1 earlier message)")
	case t.Earlier > 1:
		b.begin()
		fmt.Fprintf(&b.text, "… (%d earlier messages)", t.Earlier)
	}
}

func (b *block) begin() {
	if b.text.Len() == 0 {
		b.text.WriteString(blockHead)
	}
	b.text.WriteString("\n- ")
}

func fileCount(files int) string {
	switch {
	case files <= 0:
		return ""
	case files == 1:
		return "(1 file)"
	}
	return fmt.Sprintf("(%d files)", files)
}
