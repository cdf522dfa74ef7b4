package slack

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// Normalizer reads Slack's payloads for one workspace.
type Normalizer struct {
	// Workspace stands in thread keys; empty takes each envelope's.
	Workspace string
}

var _ adapters.Normalizer = Normalizer{}

// deliveryMetadata is the event_type of the metadata that our own posts carry;
// their event_payload is {"key": <the delivery's idempotency key>}.
const deliveryMetadata = "parley_delivery"

func (n Normalizer) workspace(envelope event.Envelope) string {
	if n.Workspace != "" {
		return n.Workspace
	}
	return envelope.Workspace
}

// Normalize says what a body means. A name that the payload carries (a bot's, or
// a person's from the other side of a shared channel) is taken as it is; others
// are asked of the directory, and where that does not know one, the id stands
// in. The run hints of the metadata are left unset: they are the policy's.
func (n Normalizer) Normalize(ctx context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	p := payloadOf(envelope)
	if fate := p.settled(directory.Self()); fate != nil {
		if fate.Disposition == event.Dead {
			return event.Event{}, errors.New(fate.Error)
		}
		return event.Event{Kind: p.kind, Ignored: fate.Reason}, nil
	}
	out := event.Event{Kind: p.kind, Viewing: p.viewing}
	if p.viewing != nil {
		return out, nil
	}
	if !p.kind.MakesMessage() {
		out.Targets = []string{p.external()}
	}
	if p.message != nil {
		out.Message = n.message(ctx, envelope, p, directory)
	}
	if p.deed != nil {
		out.Message = n.deed(ctx, envelope, p, directory)
	}
	if p.reaction != nil {
		out.Reaction = &event.Reaction{
			Emoji:    event.Text(p.reaction.Reaction),
			SenderID: senderID(p.reaction.User),
			Removed:  p.removed,

			MentionToken: mentionToken(event.Text(p.reaction.User)),
		}
		if same(p.reaction.User, p.self(directory).UserID) {
			out.Ignored = event.ReasonOwnMessage
		}
	}
	return out, nil
}

// message is what was said, or how it stands after an edit.
func (n Normalizer) message(ctx context.Context, envelope event.Envelope, p *payload, directory adapters.Directory) *event.Message {
	m, channel, self := p.message, p.place(directory), p.self(directory)
	message := &event.Message{
		ExternalID:  p.external(),
		Thread:      p.thread(n.workspace(envelope), directory),
		Channel:     channel,
		Content:     content(m),
		Metadata:    m.metadata(ctx, directory),
		Attachments: files(m.Files),
		SentAt:      sentAt(p.ts),
		Revision:    firstOf(p.revision, m.editedAt()),
		Addressed:   p.addressed(channel, directory),
		Own:         m.isOwn(self),
		Forwarded:   forwarded(m.Attachments, self),
	}
	message.Metadata.ChannelExternalID = channel.ID
	if m.ThreadTS != "" && m.ThreadTS != p.ts {
		message.ReplyTo = p.channel + "/" + m.ThreadTS
		if channel.Type != event.ChannelRoom || same(m.ParentUserID, self.UserID) { // a command's answer has none of its own
			message.OpenedOn = message.ReplyTo
		}
	}
	if message.Own {
		message.OwnKey = deliveryKey(m.Metadata)
	}
	return message
}

// addressed says how the payload shows that the message turns to us. Whether it
// answers us is seen where the thread's root is ours.
func (p *payload) addressed(channel event.Channel, facts adapters.Facts) event.Addressed {
	us := p.self(facts).UserID
	if us == "" && len(p.outer.AuthedUsers) > 0 {
		us = p.outer.AuthedUsers[0]
	}
	switch {
	case p.mention, mentions(p.message.Text, us):
		return event.AddressedMention
	case channel.Type == event.ChannelDirect:
		return event.AddressedDirect
	case same(p.message.ParentUserID, us):
		return event.AddressedReply
	default:
		return event.AddressedNone
	}
}

// sentAt is the time in a ts, whose fraction also counts messages.
func sentAt(ts string) time.Time {
	whole, fraction, _ := strings.Cut(ts, ".")
	seconds, _ := strconv.ParseInt(whole, 10, 64) // isTimestamp has seen to both
	nanos, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return time.Unix(seconds, nanos).UTC()
}

// deliveryKey is the idempotency key in the metadata of a post of ours.
func deliveryKey(raw json.RawMessage) string {
	var metadata struct {
		EventType    string `json:"event_type"`
		EventPayload struct {
			Key string `json:"key"`
		} `json:"event_payload"`
	}
	if json.Unmarshal(raw, &metadata) != nil || metadata.EventType != deliveryMetadata {
		return ""
	}
	return event.Text(metadata.EventPayload.Key)
}
