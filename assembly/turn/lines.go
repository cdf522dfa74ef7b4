package turn

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"parley/assembly"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// lines makes the transcript's turns of the journal's.
func (a *attempt) lines(ctx context.Context, turns []journal.Turn) ([]assembly.Turn, error) {
	out := make([]assembly.Turn, len(turns))
	for i, turn := range turns {
		var err error
		if out[i], err = a.turnLines(turn); err != nil {
			return nil, err
		}
	}
	return out, a.nameOwn(ctx, out)
}

// nameOwn gives quotations of our own posts the ids of the replies that they
// carry: a platform quotes by its own id, and assembly must see which of them the
// window holds.
func (a *attempt) nameOwn(ctx context.Context, turns []assembly.Turn) error {
	var own []*event.Quote
	var ids []string
	for i := range turns {
		for _, lines := range [][]assembly.Line{turns[i].Context, turns[i].Messages} {
			for k := range lines {
				if q := lines[k].Quoted; q != nil && q.Own && q.ExternalID != "" {
					own, ids = append(own, q), append(ids, q.ExternalID)
				}
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	replies, err := a.Journal.ReplyIDs(ctx, a.run.Workspace, ids)
	for _, q := range own {
		q.ExternalID = cmp.Or(replies[q.ExternalID], q.ExternalID)
	}
	return err
}

func (a *attempt) turnLines(turn journal.Turn) (out assembly.Turn, err error) {
	out.Earlier, out.Gap = turn.Earlier, turn.Gap
	for _, single := range []struct {
		from *journal.Message
		to   **assembly.Line
	}{{turn.OpenedOn, &out.OpenedOn}, {turn.Root, &out.Root}, {turn.Reply, &out.Reply}} {
		if single.from == nil {
			continue
		}
		line, err := a.line(single.from)
		if err != nil {
			return out, err
		}
		*single.to = &line
	}
	if out.Context, err = a.many(turn.Context); err != nil {
		return out, err
	}
	out.Messages, err = a.many(turn.Messages)
	return out, err
}

func (a *attempt) many(messages []journal.Message) ([]assembly.Line, error) {
	lines := make([]assembly.Line, len(messages))
	for i := range messages {
		var err error
		if lines[i], err = a.line(&messages[i]); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

func (a *attempt) line(m *journal.Message) (assembly.Line, error) {
	own := m.Author == journal.ByAgent && m.SenderID == "agent:"+a.run.Agent
	metadata, err := a.metadataOf(m, own)
	if err != nil {
		return assembly.Line{}, fmt.Errorf("message %s: %w", m.ID(), err)
	}
	line := assembly.Line{
		ExternalID: m.ExternalID, Seq: m.Seq, SentAt: m.SentAt, Content: m.Content, Metadata: metadata, Version: int(m.Version), Own: own,
		Quoted: m.Quotes.Quoted, Forwarded: m.Quotes.Forwarded,
	}
	for _, file := range m.Attachments {
		line.Files = append(line.Files, assembly.File{Name: file.Name, MimeType: file.MimeType, Size: file.Size, Bucket: file.Bucket, Path: file.Path})
	}
	return line, nil
}

// metadataOf reads a message's metadata: none of our own replies, which have no
// header, and once where one person says several things in a row.
func (a *attempt) metadataOf(m *journal.Message, own bool) (event.Metadata, error) {
	if own {
		return event.Metadata{}, nil
	}
	if a.lastMetadata == nil || !bytes.Equal(a.lastMetadata.Bytes(), m.Metadata) {
		metadata, err := event.ReadMetadata(m.Metadata)
		if err != nil {
			return metadata, err
		}
		a.lastMetadata = &metadata
	}
	return *a.lastMetadata, nil
}
