package turn

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"parley/assembly"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
)

// lines converts the journal's messages for assembly.
type lines struct {
	agent     string          // the agent of the run
	documents bool            // the agent may get documents
	last      *event.Metadata // the metadata that was read last
	quotes    []*event.Quote  // of our own posts
	err       error           // the error of the first unreadable message
}

func (l *lines) turn(t *runs.Turn) assembly.Turn {
	return assembly.Turn{
		Earlier: t.Earlier, Gap: t.Gap, OpenedOn: l.many(t.OpenedOn), Root: l.one(t.Root),
		Context: l.many(t.Context), Messages: l.many(t.Messages), Reply: l.one(t.Reply),
	}
}

func (l *lines) many(messages []messages.Message) []assembly.Line {
	out := make([]assembly.Line, len(messages))
	for i := range messages {
		out[i] = *l.one(&messages[i])
	}
	return out
}

// one returns the line of a message; nil for none.
func (l *lines) one(m *messages.Message) *assembly.Line {
	if m == nil {
		return nil
	}
	line := &assembly.Line{
		ID: m.UUID, ExternalID: m.ExternalID, Seq: m.Seq, SentAt: m.SentAt, Content: m.Content, Version: int(m.Version),
		Own:    m.Author == messages.ByAgent && m.SenderID == "agent:"+l.agent,
		System: m.Author == messages.BySystem && m.SenderID == messages.SystemSender,
		Parley: isParleys(m),
		Names:  m.Quotes.Names, Quoted: m.Quotes.Quoted, Forwarded: m.Quotes.Forwarded,
	}
	if !line.Own { // our own replies have no header
		line.Metadata = l.metadata(m)
	}
	if q := m.Quotes.Quoted; q != nil && q.Own && q.ExternalID != "" {
		l.quotes = append(l.quotes, q)
	}
	line.Files = l.filesOf(m)
	return line
}

// isParleys reports whether one of Parley's own authors wrote a message, and no caller whose words Parley passes on.
func isParleys(m *messages.Message) bool {
	namespace, id, _ := strings.Cut(m.SenderID, ":")
	switch namespace {
	case "agent":
		return m.Author == messages.BySystem && uuid.Validate(id) != nil // an agent outside Parley has a UUID
	case "schedule":
		return m.Author == messages.BySystem
	case "operator":
		return event.IsOperator(m.ExternalID)
	}
	return false
}

// files returns the attachments of a message; nil for none.
func (l *lines) filesOf(m *messages.Message) (files []assembly.File) {
	for _, f := range m.Attachments {
		files = append(files, assembly.File{
			Name: f.Name, MimeType: f.MimeType, Size: f.Size, Bucket: f.Bucket, Path: f.Path, Words: f.Words, Document: l.documents && assembly.IsDocument(f.Name, f.MimeType),
		})
	}
	return files
}

// metadata reads a message's metadata. Consecutive messages of one person are read once.
func (l *lines) metadata(m *messages.Message) event.Metadata {
	if l.last == nil || !bytes.Equal(l.last.Bytes(), m.Metadata) {
		metadata, err := event.ReadMetadata(m.Metadata)
		if err != nil {
			l.err = cmp.Or(l.err, fmt.Errorf("message %s: %w", m.ID(), err))
			return event.Metadata{}
		}
		l.last = &metadata
	}
	return *l.last
}

// nameOwn replaces the platform's ids of our quoted posts by the ids of their replies.
// A platform quotes by its own id, and assembly must recognise replies in the window.
func (l *lines) nameOwn(ctx context.Context, sent *outbox.Outbox, workspace string) error {
	for _, q := range l.quotes {
		reply, err := sent.ReplyID(ctx, workspace, q.ExternalID)
		if err != nil {
			return err
		}
		q.ExternalID = cmp.Or(reply, q.ExternalID)
	}
	return nil
}
