package slack

import (
	"context"

	"parley/adapters"
	"parley/ingest/event"
)

// deed is what somebody did, as a message in their own name. Where Slack tells no
// time, as of a command, the arrival stands in.
func (n Normalizer) deed(ctx context.Context, envelope event.Envelope, p *payload, directory adapters.Directory) *event.Message {
	d, channel, self := p.deed, p.place(directory), p.self(directory)
	message := &event.Message{
		ExternalID: p.external(),
		Thread:     p.thread(n.workspace(envelope), directory),
		Channel:    channel,
		Content:    d.typed,
		Metadata:   (&wireMessage{User: d.user}).metadata(ctx, directory),
		SentAt:     envelope.ReceivedAt,
		Addressed:  event.AddressedCommand,
		Own:        same(d.user, self.UserID),
	}
	if p.kind == event.KindAction {
		message.Addressed = event.AddressedAction
	}
	if isTimestamp(d.at) {
		message.SentAt = sentAt(d.at)
	}
	message.Metadata.ChannelExternalID, message.Metadata.Extra = channel.ID, d.extra
	if d.about == nil {
		return message
	}
	message.Quoted = quote(ctx, p.channel, d.about, self, directory)
	if root := d.about.ThreadTS; root != "" && root != d.about.TS && channel.Type != event.ChannelRoom {
		message.OpenedOn = p.channel + "/" + root
	}
	return message
}

// quote is the message that something was done to; nil where the payload does
// not carry it.
func quote(ctx context.Context, channel string, m *wireMessage, self event.Self, directory adapters.Directory) *event.Quote {
	if m.author() == "" {
		return nil
	}
	author := m.metadata(ctx, directory)
	return &event.Quote{
		ExternalID: channel + "/" + m.TS, Name: author.SenderDisplayName, MentionToken: author.MentionToken, SenderID: author.SenderID,
		Content: content(m), Files: len(m.Files), Own: m.isOwn(self),
	}
}
