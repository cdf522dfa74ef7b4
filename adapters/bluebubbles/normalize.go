package bluebubbles

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// Normalize converts a webhook to an event. A message and an edit contain the complete
// message; a delete and a reaction contain only their target. If the payload names no chat,
// as in updates, the message's Thread, Channel and channel_external_id are empty, because the
// recorded message has them.
func (n Normalizer) Normalize(ctx context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	p := parse(envelope)
	if p.err != nil {
		return event.Event{}, fmt.Errorf("read webhook: %w", p.err)
	}
	e := event.Event{Kind: p.kind, Ignored: p.ignored}
	if p.kind == event.KindMessage && p.copied(directory.Self()) || n.signs && p.fromMe && p.tapback.emoji == workingTapback {
		e.Ignored = event.ReasonOwnMessage
	}
	if e.Ignored != "" {
		return e, nil
	}
	if p.kind != event.KindMessage {
		e.Targets = []string{p.messageID()}
	}
	switch p.kind {
	case event.KindReaction:
		e.Reaction = p.reaction(p.tapback, directory.Self())
	case event.KindMessage, event.KindEdit:
		e.Message = p.event(ctx, envelope.Workspace, directory)
		if t, ok := readWrittenTapback(p.text); ok && p.kind == event.KindMessage && len(p.attachments) == 0 {
			e.Reaction = p.reaction(t, directory.Self())
		}
		if word := n.wake.match(e.Message.Channel, p.text); word != "" {
			e.Message.Addressed, e.Message.Called = event.AddressedMention, word
		}
	}
	return e, nil
}

// reaction returns a tapback as the reaction of the message's author.
func (p payload) reaction(t tapback, self event.Self) *event.Reaction {
	r := &event.Reaction{
		Emoji: t.emoji, SenderID: p.senderID(self), Part: t.part, Removed: t.removed, Quotes: t.quotes,
		SenderType: event.Human, // iMessage has no bots
		SenderName: p.handle.name(), IsFromMe: new(p.fromMe), GUID: p.guid, TextMessage: p.isText(),
	}
	if p.fromMe {
		r.SenderName = meName
	}
	if p.chat != nil {
		r.ChannelExternalID = p.chat.guid
	}
	return r
}

func (p payload) event(ctx context.Context, workspace string, directory adapters.Directory) *event.Message {
	self := directory.Self()
	m := &event.Message{
		ExternalID:  p.guid,
		Content:     p.text,
		Attachments: p.attachments,
		SentAt:      p.created,
		EditedAt:    p.edited,
		Revision:    p.revision(),
		Dated:       dated,
		Addressed:   p.addressed(self),
		Unfinished:  p.empty(), // its files come later, or it is a balloon
		AwaitsFiles: p.awaitsFiles,
		Continues:   p.isLink,
		TextMessage: p.isText(),
		ReplyTo:     p.replyTo,
		OwnKey:      p.ownKey(),
		Metadata: event.Metadata{
			Source:            string(event.BlueBubbles),
			SenderID:          p.senderID(self),
			SenderDisplayName: p.senderName(ctx, directory),
			SenderType:        p.senderType(),
			IsFromMe:          new(p.fromMe),
			MessageGUID:       p.guid,
		},
	}
	m.Metadata.SetSubject(p.subject)
	if p.chat != nil {
		m.Thread = ThreadKey(workspace, p.chat.guid)
		m.Channel = p.chat.channel()
		m.Metadata.ChannelExternalID = p.chat.guid
		if p.chat.name != "" {
			name, _ := json.Marshal(p.chat.name) // a string always encodes
			m.Metadata.Extra = []event.Extra{{Key: "binding_display_name", Value: name}}
		}
	}
	return m
}

// copied reports whether the message is the received copy of an own message, which Messages
// makes in the chat with oneself.
func (m message) copied(self event.Self) bool {
	return !m.fromMe && m.chat != nil && m.chat.channel().Type == event.ChannelDirect && m.chat.isWith(self.Address)
}

// senderType returns Bot for the senders of text messages that are no persons.
func (m message) senderType() event.SenderType {
	if !m.fromMe && isProgram(m.address()) {
		return event.Bot
	}
	return event.Human
}

// shortCode is the number of digits up to which a number is a short code. Persons' numbers have
// more, even without their country code.
const shortCode = 6

// isProgram reports whether an address is a short code, an alphanumeric sender such as a bank's
// name, or a business. The address of a person is a telephone number or an e-mail address.
func isProgram(address string) bool {
	if address == "" || strings.ContainsRune(address, '@') {
		return false
	}
	number := strings.ReplaceAll(separators.Replace(address), "+", "")
	isDigit := func(r rune) bool { return r >= '0' && r <= '9' }
	return len(number) <= shortCode || strings.TrimFunc(number, isDigit) != ""
}

// addressed returns AddressedDirect for a message in a one-to-one chat. The owner's own
// messages there address the other person, except in the chat with oneself.
func (m message) addressed(self event.Self) event.Addressed {
	if m.chat == nil || m.chat.channel().Type != event.ChannelDirect {
		return event.AddressedNone
	}
	if m.fromMe && !m.chat.isWith(self.Address) {
		return event.AddressedNone
	}
	return event.AddressedDirect
}

// keyForm matches a delivery's idempotency key; see adapters.Post.
var keyForm = regexp.MustCompile(`^[a-z0-9]{1,25}$`)

// ownKey returns the tempGuid of one of our messages if it has the form of a delivery's key.
// Other clients of the server choose tempGuids too, so only the deliveries can tell whether
// it is a key.
func (m message) ownKey() string {
	key, _, _ := strings.Cut(m.tempGUID, attemptMark)
	if !m.fromMe || !keyForm.MatchString(key) {
		return ""
	}
	return key
}

// attemptMark ends the delivery's key in a tempGuid. After it comes a part that differs in each
// attempt, because the server refuses a tempGuid as long as an earlier attempt is under way.
const attemptMark = "."

// The substitutes for a sender without a name or an address.
const (
	meName      = "Me"
	meAddress   = "me"
	unknownName = "Unknown"
	unknownID   = "unknown"
)

func (m message) senderID(self event.Self) string {
	namespace := senders + ":"
	switch address := chatName(m.address()); {
	case m.fromMe && self.Address != "":
		return namespace + chatName(self.Address)
	case m.fromMe:
		return namespace + meAddress
	case address != "":
		return namespace + address
	}
	return namespace + unknownID
}

// address returns the other person's address. In a one-to-one chat, a message without a
// handle can only be from that person.
func (m message) address() string {
	if m.handle.address == "" && m.chat != nil && m.chat.channel().Type == event.ChannelDirect {
		return chatName(m.chat.guid)
	}
	return m.handle.address
}

// textServices are the services whose senders may claim any address.
var textServices = []string{"SMS", "RCS"}

// isText reports whether another person's message came as a text message.
func (m message) isText() bool {
	service := m.handle.service
	if m.chat != nil && !slices.Contains(textServices, service) {
		service, _, _ = strings.Cut(m.chat.guid, ";")
	}
	return !m.fromMe && slices.Contains(textServices, service)
}

// senderName returns the sender's displayed name. That of a text message says so, because it proves
// less than other messages who its sender is.
func (m message) senderName(ctx context.Context, directory adapters.Directory) string {
	name := m.knownName(ctx, directory)
	if m.isText() {
		name += " (SMS)"
	}
	return name
}

// knownName returns the payload's name, else the name in the server's contacts, else the address.
func (m message) knownName(ctx context.Context, directory adapters.Directory) string {
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
	if user, ok := directory.User(ctx, chatName(address)); ok && strings.TrimSpace(user.DisplayName) != "" {
		return user.DisplayName
	}
	return address
}
