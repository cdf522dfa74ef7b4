package bluebubbles

import (
	"context"
	"fmt"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// Normalize says what a webhook means. An edit and a message carry the message
// whole; a delete and a reaction name their target alone. Where the payload
// names no chat, as in updates, the message's Thread, Channel and
// channel_external_id are empty: the recorded message has them.
func (Normalizer) Normalize(ctx context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	p, err := read(envelope.Body)
	if err != nil {
		return event.Event{}, fmt.Errorf("read webhook: %w", err)
	}
	e := event.Event{Kind: p.kind, Ignored: p.ignored}
	if p.ignored != "" {
		return e, nil
	}
	if p.kind != event.KindMessage {
		e.Targets = []string{p.subjectID()}
	}
	switch p.kind {
	case event.KindReaction:
		e.Reaction = &event.Reaction{
			Emoji:    p.tapback.emoji,
			SenderID: p.senderID(directory.Self()),
			Part:     p.tapback.part,
			Removed:  p.tapback.removed,

			SenderType: event.Human, // there are no others
		}
	case event.KindMessage, event.KindEdit:
		e.Message = p.event(ctx, envelope.Workspace, directory)
	}
	return e, nil
}

func (p payload) event(ctx context.Context, workspace string, directory adapters.Directory) *event.Message {
	self := directory.Self()
	m := &event.Message{
		ExternalID:  p.guid,
		Content:     p.content(),
		Attachments: p.attachments,
		SentAt:      p.created,
		Revision:    p.revision(),
		Addressed:   p.addressed(self),
		ReplyTo:     p.replyTo,
		OwnKey:      p.ownKey(),
		Metadata: event.Metadata{
			Source:            string(event.BlueBubbles),
			SenderID:          p.senderID(self),
			SenderDisplayName: p.senderName(ctx, directory),
			SenderType:        event.Human,
			IsFromMe:          event.Bool(p.fromMe),
			MessageGUID:       p.guid,
		},
	}
	if p.chat != nil {
		m.Thread = ThreadKey(workspace, p.chat.guid)
		m.Channel = p.chat.channel()
		m.Metadata.ChannelExternalID = p.chat.guid
	}
	return m
}

// addressed says that a message in a one-to-one chat turns to us. The owner's
// own words there turn to the other person, except in the chat with oneself.
func (m message) addressed(self event.Self) event.Addressed {
	if m.chat == nil || m.chat.channel().Type != event.ChannelDirect {
		return event.AddressedNone
	}
	if m.fromMe && !m.chat.isWith(self.Address) {
		return event.AddressedNone
	}
	return event.AddressedDirect
}

// maxKey is how long a delivery's idempotency key is at the most; see adapters.Post.
const maxKey = 25

// ownKey is the tempGuid under which a message of ours was sent, if it has the
// form of a delivery's key. Whether it is one, the deliveries know: other
// clients of the server choose tempGuids too.
func (m message) ownKey() string {
	foreign := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	if !m.fromMe || len(m.tempGUID) > maxKey || strings.ContainsFunc(m.tempGUID, foreign) {
		return ""
	}
	return m.tempGUID
}

// The stand-ins for a sender whom nothing names.
const (
	meName      = "Me"
	meAddress   = "me"
	unknownName = "Unknown"
	unknownID   = "unknown"
)

func (m message) senderID(self event.Self) string {
	namespace := event.BlueBubbles.Namespace() + ":"
	switch address := m.address(); {
	case m.fromMe && self.Address != "":
		return namespace + self.Address
	case m.fromMe:
		return namespace + meAddress
	case address != "":
		return namespace + address
	}
	return namespace + unknownID
}

// address is where the other person writes from. A message without a handle in
// a one-to-one chat can only be from the person whom the chat is with.
func (m message) address() string {
	if m.handle.address == "" && m.chat != nil && m.chat.channel().Type == event.ChannelDirect {
		return chatName(m.chat.guid)
	}
	return m.handle.address
}

// senderName is how the sender is shown: as the payload names him, as the
// server's contacts do, or by the address.
func (m message) senderName(ctx context.Context, directory adapters.Directory) string {
	if m.fromMe {
		return meName
	}
	if name := m.handle.name(); name != "" {
		return name
	}
	address := m.address()
	if address == "" {
		return unknownName
	}
	if user, ok := directory.User(ctx, address); ok && strings.TrimSpace(user.DisplayName) != "" {
		return user.DisplayName
	}
	return address
}

func (h handle) name() string {
	if name := strings.TrimSpace(h.displayName); name != "" {
		return name
	}
	return strings.TrimSpace(strings.TrimSpace(h.firstName) + " " + strings.TrimSpace(h.lastName))
}
