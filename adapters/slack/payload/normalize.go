package payload

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/words"
	"parley/ingest/event"
)

// Normalizer decodes Slack's payloads. It has no state.
type Normalizer struct{}

var _ adapters.Normalizer = Normalizer{}

// Normalize returns the event of a body. It uses the names in the payload: a bot's
// name, or the name of a user of the other team in a shared channel. It looks up other
// names in the directory, and uses the id if the directory does not know the name. It
// leaves the run hints of the metadata unset, because the policy sets them. The
// directory's state holds the channels that users view in assistant threads.
func (Normalizer) Normalize(ctx context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	p := Of(envelope)
	if result := p.earlyResult(directory.Self()); result != nil {
		if result.Disposition == event.Dead {
			return event.Event{}, errors.New(result.Error)
		}
		return event.Event{Kind: p.kind, Ignored: result.Reason}, nil
	}
	if p.assistant != nil {
		return p.rememberView(ctx, directory.State())
	}
	out := event.Event{Kind: p.kind, Server: event.Text(p.senderTeam(directory))}
	if !p.kind.MakesMessage() {
		out.Targets = []string{p.messageID()}
	}
	if p.message != nil {
		out.Message, out.Carries = p.toMessage(ctx, envelope, directory), p.message.carries(p.channel)
	}
	if p.interaction != nil {
		out.Message = p.interactionMessage(ctx, envelope, directory)
		if target := p.interaction.target; target != nil {
			out.Carries = target.carries(p.channel)
		}
		if err := p.rememberCommand(ctx, envelope, directory.State()); err != nil {
			return out, err
		}
	}
	if p.reaction != nil {
		out.Reaction = &event.Reaction{
			Emoji:    event.Text(p.reaction.Reaction),
			SenderID: senderID(p.reaction.User),
			Removed:  p.removed,

			MentionToken: mentionToken(event.Text(p.reaction.User)),
		}
		if SameID(p.reaction.User, p.self(directory).UserID) {
			out.Ignored = event.ReasonOwnMessage
		}
	}
	if out.Message != nil {
		return out, addView(ctx, out.Message, directory.State())
	}
	return out, nil
}

// toMessage returns the message, or its state after an edit.
func (p *Payload) toMessage(ctx context.Context, envelope event.Envelope, directory adapters.Directory) *event.Message {
	m, channel, self := p.message, p.channelOf(directory), p.self(directory)
	message := &event.Message{
		ExternalID:  p.messageID(),
		Thread:      p.thread(envelope.Workspace, directory),
		Channel:     channel,
		Content:     m.content(),
		Metadata:    m.metadata(ctx, directory),
		Attachments: files(m.Files),
		SentAt:      SentAt(p.ts),
		EditedAt:    editTime(m.editedAt()),
		Revision:    FirstOf(p.revision, m.editedAt()),
		Addressed:   p.addressed(channel, directory),
		AltSenderID: m.botUser(),
		Through:     m.through(),
		Own:         m.IsOwn(self),
		Forwarded:   forwarded(ctx, m.Attachments, self, directory),
		AwaitsFiles: slices.ContainsFunc(m.Files, File.isBeingProcessed) || m.awaitsLinked(),
	}
	message.Metadata.ChannelExternalID = channel.ID
	if m.ThreadTS != "" && m.ThreadTS != p.ts {
		message.ReplyTo = MessageID(p.channel, m.ThreadTS)
		message.FollowUp = channel.Type == event.ChannelRoom && !callsSomeone(m.encoded())
		if channel.Type != event.ChannelRoom || SameID(m.rootUser(), self.UserID) { // the reply to a command is not a thread's root in a room
			message.OpenedOn = message.ReplyTo
		}
	}
	if p.kind == event.KindMessage {
		message.Attachments = present(message.Attachments) // an edit tells of removed ones
	}
	message.Dated = max(0, strings.IndexByte(message.Revision, '.')) // Slack rounds the time of an edit down to the second
	if message.Own {
		message.OwnKey = deliveryKey(m.Metadata)
	}
	return message
}

// editTime returns the time of an edit; zero for none.
func editTime(ts string) time.Time {
	if !IsTimestamp(ts) {
		return time.Time{}
	}
	return SentAt(ts)
}

// carries returns the ids of the messages that a payload contains with this one: the root of the
// thread of a reply that was also sent to the channel, and those that it forwards or links to, also
// inside each other.
func (m *Message) carries(channel string) (ids []string) {
	if IsTimestamp(m.Root.TS) {
		ids = append(ids, MessageID(channel, m.Root.TS))
	}
	list := attachments(m.Attachments)
	for level := 0; level < words.MaxLevels && len(list) > 0; level++ {
		var inner []wireAttachment
		for _, a := range list {
			if IsID(a.ChannelID) && IsTimestamp(a.TS) {
				ids = append(ids, MessageID(a.ChannelID, a.TS))
			}
			inner = append(inner, attachments(a.Attachments)...)
		}
		list = inner
	}
	return ids
}

// addressed returns how the message addresses the bot, as far as the payload shows it.
// A reply to a message of ours is recognised only if the thread's root is ours.
func (p *Payload) addressed(channel event.Channel, facts adapters.Facts) event.Addressed {
	us := p.self(facts).UserID
	if us == "" && len(p.outer.AuthedUsers) > 0 {
		us = p.outer.AuthedUsers[0]
	}
	switch {
	case p.mention, mentions(p.message.encoded(), us):
		return event.AddressedMention
	case channel.Type == event.ChannelDirect:
		return event.AddressedDirect
	case SameID(p.message.rootUser(), us):
		return event.AddressedReply
	default:
		return event.AddressedNone
	}
}
