package payload

import (
	"context"

	"parley/adapters"
	"parley/ingest/event"
)

// interactionMessage returns an interaction as a message of its user. If Slack gives no
// time, for example for a command, the time is the arrival.
func (p *Payload) interactionMessage(ctx context.Context, envelope event.Envelope, directory adapters.Directory) *event.Message {
	d, channel, self := p.interaction, p.channelOf(directory), p.self(directory)
	message := &event.Message{
		ExternalID: p.messageID(),
		Thread:     p.thread(envelope.Workspace, directory),
		Channel:    channel,
		Content:    d.text,
		Metadata:   (&Message{User: d.user}).metadata(ctx, directory),
		SentAt:     envelope.ReceivedAt,
		Addressed:  event.AddressedCommand,
		Command:    d.word,
		Pressed:    d.pressed,
		Own:        SameID(d.user, self.UserID),
	}
	if p.kind == event.KindAction {
		message.Addressed = event.AddressedAction
	}
	if IsTimestamp(d.ts) {
		message.SentAt = SentAt(d.ts)
	}
	message.Metadata.ChannelExternalID, message.Metadata.Extra = channel.ID, d.extra
	if d.target == nil {
		return message
	}
	message.Quoted = quote(ctx, p.channel, d.target, self, directory)
	if root := d.target.ThreadTS; root != "" && root != d.target.TS && channel.Type != event.ChannelRoom {
		message.OpenedOn = MessageID(p.channel, root)
	}
	return message
}

// quote returns the message with which the user interacted; nil if the payload does not
// contain it.
func quote(ctx context.Context, channel string, m *Message, self event.Self, directory adapters.Directory) *event.Quote {
	if m.author() == "" {
		return nil
	}
	author := m.metadata(ctx, directory)
	return &event.Quote{
		ExternalID: MessageID(channel, m.TS), Name: author.SenderDisplayName, MentionToken: author.MentionToken, SenderID: author.SenderID, SenderType: author.SenderType,
		AltSenderID: m.botUser(), Content: m.content(), Files: len(present(files(m.Files))), Own: m.IsOwn(self),
	}
}
