package assembly

import (
	"cmp"
	"fmt"
	"strings"

	"parley/ingest/event"
)

// blockHead is the first line of a block that this package builds.
const blockHead = "[Thread context — prior messages in this thread, newest last]"

// forwarded begins the label of a forwarded message.
const forwarded = "(forwarded)"

// notShown replaces a quotation whose author or channel is refused.
const notShown = "(a message that is not shown)"

// maxSupplied is the number of bytes that are kept of an integration's own block.
const maxSupplied = 16 << 10

// block builds the thread context of one turn.
type block struct {
	naming
	// visible are the external ids of the messages that the agent sees. The block quotes
	// no visible message, and a message that it quotes becomes visible.
	visible map[string]bool
	text    strings.Builder
}

// build returns the block's text. It is empty if there is nothing to show.
func (b *block) build(t *view) string {
	if t.supplied != "" {
		return t.supplied
	}
	for i := range t.OpenedOn {
		b.line(&t.OpenedOn[i])
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

// line writes a message with its quoted and forwarded messages.
func (b *block) line(l *Line) {
	b.quoted(l)
	name := ""
	switch {
	case l.Own:
		name = b.agent
	case l.System:
	case l.Parley:
		name = strings.ReplaceAll(ownLabel(&l.Metadata), ": ", "; ")
	case l.Version > 0:
		name = b.person(&l.Metadata)
	}
	b.write(name, l.typed(), filesNamed(l.ownFiles()))
	b.forwarded(l)
}

func (b *block) quoted(l *Line) {
	q := l.Quoted
	if q == nil || q.ExternalID != "" && b.visible[q.ExternalID] {
		return
	}
	switch {
	case q.Hidden:
		b.write("", notShown, "")
	case q.Own:
		b.write(b.agent, q.Content, quotedFiles(q))
	default:
		b.write(b.person(quotedAuthor(l, q)), q.Content, quotedFiles(q))
	}
	b.visible[q.ExternalID] = true
}

func (b *block) forwarded(l *Line) {
	for i := range l.Forwarded {
		q := &l.Forwarded[i]
		name := forwarded
		switch {
		case q.Hidden:
			b.write(name, notShown, "")
			continue
		case q.Own:
			name += " " + b.agent
		case q.Name != "" || q.SenderID != "":
			name += " " + b.person(quotedAuthor(l, q))
		}
		b.write(name, q.Content, quotedFiles(q))
	}
}

// quotedAuthor returns the author of a quotation. The source is that of the quoting
// message.
func quotedAuthor(l *Line, q *event.Quote) *event.Metadata {
	return &event.Metadata{
		Source:            l.Metadata.Source,
		SenderID:          q.SenderID,
		SenderDisplayName: q.Name,
		MentionToken:      q.MentionToken,
	}
}

// person returns the label of a line of another author. A label ends at its first ": ",
// so it contains none. An author whose name reads like one of our own labels is labelled by id.
func (b *block) person(author *event.Metadata) string {
	name := b.label(author)
	if b.mention(author) == "" && b.isOwn(NameOf(author)) || strings.HasPrefix(name, forwarded) {
		nameless := *author
		nameless.SenderDisplayName = ""
		name = b.label(&nameless)
	}
	return strings.ReplaceAll(name, ": ", "; ")
}

// write adds a line of the beginning of the content, and of the files, unless there is nothing to show. The name
// is empty if the content includes one, and for a line of nobody.
func (b *block) write(name, content, files string) {
	text := excerpt(content)
	if text != "" && files != "" {
		text += " "
	}
	if text += files; text == "" {
		return
	}
	b.begin()
	if name != "" {
		b.text.WriteString(name)
		b.text.WriteString(": ")
	}
	writeIndented(&b.text, text, nil)
}

// gap adds a line with the number of messages that are left out, or with the fact that
// some could not be read.
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

// quotedFiles returns the names of the files of a quotation, or else their number if that is known.
func quotedFiles(q *event.Quote) string {
	if len(q.FileNames) > 0 {
		return fileNames(q.FileNames)
	}
	return fileCount(q.Files)
}

// filesNamed returns the names of files, or else their number.
func filesNamed(files []File) string {
	names, known := make([]string, len(files)), false
	for i := range files {
		names[i] = files[i].Name
		known = known || names[i] != ""
	}
	if !known {
		return fileCount(len(files))
	}
	return fileNames(names)
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

// maxFileNames bounds the named files of one message.
const maxFileNames = 10

// fileNames returns the names of the files of a message, cleaned like the names of authors, such
// as "(file: report.pdf)"; empty for none.
func fileNames(names []string) string {
	if len(names) == 0 {
		return ""
	}
	label, more := "(file: ", ""
	if len(names) > 1 {
		label = "(files: "
	}
	if left := len(names) - maxFileNames; left > 0 {
		names, more = names[:maxFileNames], fmt.Sprintf(", … and %d more", left)
	}
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = cmp.Or(clean(name), "without a name")
	}
	return label + strings.Join(shown, ", ") + more + ")"
}
