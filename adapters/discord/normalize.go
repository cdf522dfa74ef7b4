package discord

import (
	"context"
	"fmt"

	"parley/adapters"
	"parley/ingest/event"
)

// Normalize converts a frame to an event. The update of an edit may lack the author. The
// sender's metadata is then empty, because the recorded message has it.
func (Normalizer) Normalize(ctx context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	p, err := read(envelope.Body)
	if err != nil {
		return event.Event{}, fmt.Errorf("read gateway frame: %w", err)
	}
	e := event.Event{Kind: p.kind, Ignored: p.ignored}
	if p.ignored != "" {
		return e, nil
	}
	if p.kind != event.KindMessage {
		e.Targets = p.targets
	}
	if p.message != nil {
		e.Message = p.message.event(ctx, envelope.Workspace, directory)
	}
	if e.Reaction = p.reaction; e.Reaction != nil && e.Reaction.SenderID == senderID(directory.Self().UserID) {
		e.Ignored = event.ReasonOwnMessage
	}
	return e, nil
}

func (m *message) event(ctx context.Context, workspace string, directory adapters.Directory) *event.Message {
	self := directory.Self()
	out := &event.Message{
		ExternalID:  m.id,
		Thread:      ThreadKey(workspace, m.channel.ID),
		Channel:     m.channel,
		Content:     m.content,
		Metadata:    m.metadata(ctx, directory),
		Attachments: m.files,
		SentAt:      m.sentAt(),
		Revision:    m.revision(),
		Addressed:   m.addressed(self),
		ReplyTo:     m.repliedTo(),
		Own:         m.author.is(self),
	}
	if m.threaded && m.id != m.channel.ID {
		out.OpenedOn = m.channel.ID
	}
	if m.quoted != nil {
		quote := m.quoted.quote(ctx, directory)
		out.Quoted = &quote
	}
	for i := range m.forwarded {
		out.Forwarded = append(out.Forwarded, m.forwarded[i].quote(ctx, directory))
	}
	return out
}

func (m *message) metadata(ctx context.Context, directory adapters.Directory) event.Metadata {
	metadata := event.Metadata{Source: string(event.Discord), ChannelExternalID: m.channel.ID}
	if m.hasAuthor {
		author := m.author.resolve(ctx, directory)
		metadata.SenderID = senderID(author.id)
		metadata.SenderDisplayName = author.name()
		metadata.SenderType = author.senderType()
		metadata.MentionToken = author.mentionToken()
	}
	return metadata
}

// quote returns the message as a quotation in another message. A forwarded message has no
// author.
func (m *message) quote(ctx context.Context, directory adapters.Directory) event.Quote {
	quote := event.Quote{ExternalID: m.id, Content: m.content, Files: len(m.files)}
	if m.hasAuthor {
		author := m.author.resolve(ctx, directory)
		quote.Name = author.name()
		quote.MentionToken = author.mentionToken()
		quote.SenderID = senderID(author.id)
		quote.Own = author.is(directory.Self())
	}
	return quote
}
