package payload

import (
	"context"
	"fmt"
	"slices"

	"parley/adapters"
	"parley/ingest/event"
)

// Normalize converts a frame to an event. The update of an edit may lack the author. The
// sender's metadata is then empty, because the recorded message has it.
func (n Normalizer) Normalize(ctx context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	p := Of(envelope)
	if p.err != nil {
		return event.Event{}, fmt.Errorf("read gateway frame: %w", p.err)
	}
	e := event.Event{Kind: p.kind, Ignored: p.ignored, Server: p.guild}
	if p.ignored != "" {
		return e, nil
	}
	if !p.kind.MakesMessage() {
		e.Targets = p.targets
	}
	if p.message != nil {
		var err error
		if e.Message, err = n.message(ctx, p.message, envelope.Workspace, directory); err != nil {
			return event.Event{}, err
		}
		if id := p.message.reference.messageID; id != "" {
			e.Carries = []string{id} // Discord adds it, also if the message is no reply to it
		}
	}
	if e.Reaction = p.reaction; e.Reaction != nil && e.Reaction.SenderID == senderID(directory.Self().UserID) {
		e.Ignored = event.ReasonOwnMessage
	}
	return e, nil
}

// message returns the message of an event. It stores the facts that later calls need: the channel
// of a question with a thread of its own, and the message of its files.
func (n Normalizer) message(ctx context.Context, m *message, workspace string, directory adapters.Directory) (*event.Message, error) {
	out := m.event(ctx, workspace, directory)
	if out.Addressed == event.AddressedNone && len(m.roles) > 0 && m.guild != "" {
		value, err := directory.State().Get(ctx, ServerStateName(m.guild))
		if err != nil {
			return nil, fmt.Errorf("read the bot's role: %w", err)
		}
		if role := ReadServer(value).Role; role != "" && slices.Contains(m.roles, role) {
			out.Addressed = event.AddressedMention
		}
	}
	if n.opensThread(m, directory.Self()) {
		out.Thread = ThreadKey(workspace, m.id)
		if err := rememberQuestion(ctx, directory.State(), m.id, m.channel.ID); err != nil {
			return nil, err
		}
	}
	if len(m.attached()) > 0 && IsID(m.id) {
		if err := rememberFiles(ctx, directory.State(), m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// opensThread reports whether a message is a question that gets a thread of its own: it addresses
// us in a channel of a server. The thread gets the id of the message.
func (n Normalizer) opensThread(m *message, self event.Self) bool {
	return n.AutoThread && m.guild != "" && !m.threaded && m.asked == event.AddressedNone && !m.author.is(self) &&
		m.addressed(self) != event.AddressedNone
}

func (m *message) event(ctx context.Context, workspace string, directory adapters.Directory) *event.Message {
	self := directory.Self()
	out := &event.Message{
		ExternalID:  m.id,
		Thread:      ThreadKey(workspace, m.channel.ID),
		Channel:     m.channel,
		Content:     m.content,
		Names:       m.names,
		Metadata:    m.metadata(ctx, directory),
		Attachments: m.files,
		AllFiles:    m.allFiles,
		SentAt:      m.sentAt(),
		EditedAt:    m.edited,
		Revision:    m.revision(),
		Dated:       len(m.revision()),
		Addressed:   m.addressed(self),
		Command:     m.command,
		Pressed:     m.pressed,
		ReplyTo:     m.repliedTo(),
		FollowUp:    m.threaded && !m.callsSomeone(),
		AltSenderID: m.author.application,
		Groups:      m.author.roles,
		Own:         m.author.is(self),
	}
	out.Metadata.Extra = m.extra
	if m.threaded && m.id != m.channel.ID {
		out.OpenedOn = m.channel.ID
	}
	if m.quoted != nil {
		quote := m.quoted.quote(ctx, directory, m.guild)
		quote.Attached = m.quoted.files
		out.Quoted = &quote
	}
	for i := range m.forwarded {
		quote := m.forwarded[i].quote(ctx, directory, m.guild)
		quote.Server, quote.Channel, quote.Attached = m.reference.guild, m.reference.channelID, m.forwarded[i].files
		if i == 0 {
			quote.ExternalID = m.reference.messageID // Discord forwards one message at a time
		}
		out.Forwarded = append(out.Forwarded, quote)
	}
	return out
}

func (m *message) metadata(ctx context.Context, directory adapters.Directory) event.Metadata {
	metadata := event.Metadata{Source: string(event.Discord), ChannelExternalID: m.channel.ID}
	if m.hasAuthor {
		author := m.author.resolve(ctx, directory, m.guild)
		metadata.SenderID = senderID(author.id)
		metadata.SenderDisplayName = author.name()
		metadata.SenderType = author.senderType()
		metadata.MentionToken = author.mentionToken()
	}
	return metadata
}

// quote returns the message as a quotation in another message. A forwarded message has no
// author.
func (m *message) quote(ctx context.Context, directory adapters.Directory, guild string) event.Quote {
	quote := event.Quote{ExternalID: m.id, Content: m.content, Names: m.names, Files: len(m.files)}
	if m.hasAuthor {
		author := m.author.resolve(ctx, directory, guild)
		quote.Name = author.name()
		quote.MentionToken = author.mentionToken()
		quote.SenderID = senderID(author.id)
		quote.SenderType, quote.AltSenderID = author.senderType(), author.application
		quote.Own = author.is(directory.Self())
	}
	return quote
}
