package payload

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
	p := Parse(envelope)
	if p.Err != nil {
		return event.Event{}, fmt.Errorf("read webhook: %w", p.Err)
	}
	e := event.Event{Kind: p.Kind, Ignored: p.ignored}
	if p.Kind == event.KindMessage && p.copied(directory.Self()) || n.signs && p.fromMe && p.tapback.emoji == WorkingTapback {
		e.Ignored = event.ReasonOwnMessage
	}
	if e.Ignored != "" {
		return e, nil
	}
	if p.Kind != event.KindMessage {
		e.Targets = []string{p.messageID()}
	}
	switch p.Kind {
	case event.KindReaction:
		e.Reaction = p.reaction(p.tapback, directory.Self())
	case event.KindMessage, event.KindEdit:
		e.Message = p.event(ctx, envelope.Workspace, directory)
		if t, ok := readWrittenTapback(p.text); ok && p.Kind == event.KindMessage && len(p.attachments) == 0 {
			e.Reaction = p.reaction(t, directory.Self())
		}
		if word := n.wake.match(e.Message.Channel, p.text); word != "" {
			e.Message.Addressed, e.Message.Called = event.AddressedMention, word
		}
	}
	return e, nil
}

// reaction returns a tapback as the reaction of the message's author.
func (p Payload) reaction(t tapback, self event.Self) *event.Reaction {
	r := &event.Reaction{
		Emoji: t.emoji, SenderID: p.senderID(self), Part: t.part, Removed: t.removed, Quotes: t.quotes,
		SenderType: event.Human, // iMessage has no bots
		SenderName: p.handle.Name(), IsFromMe: new(p.fromMe), GUID: p.GUID, TextMessage: p.isText(),
	}
	if p.fromMe {
		r.SenderName = meName
	}
	if p.Chat != nil {
		r.ChannelExternalID = p.Chat.GUID
	}
	return r
}

func (p Payload) event(ctx context.Context, workspace string, directory adapters.Directory) *event.Message {
	self := directory.Self()
	m := &event.Message{
		ExternalID:  p.GUID,
		Content:     p.text,
		Attachments: p.attachments,
		SentAt:      p.Created,
		EditedAt:    p.Edited,
		Revision:    p.revision(),
		Dated:       dated,
		Addressed:   p.addressed(self),
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
			MessageGUID:       p.GUID,
		},
	}
	m.Metadata.SetSubject(p.subject)
	if p.Chat != nil {
		m.Thread = ThreadKey(workspace, p.Chat.GUID)
		m.Channel = p.Chat.channel()
		m.Metadata.ChannelExternalID = p.Chat.GUID
		if p.Chat.name != "" {
			name, _ := json.Marshal(p.Chat.name) // a string always encodes
			m.Metadata.Extra = []event.Extra{{Key: "binding_display_name", Value: name}}
		}
	}
	return m
}

// copied reports whether the message is the received copy of an own message, which Messages
// makes in the chat with oneself.
func (m Message) copied(self event.Self) bool {
	return !m.fromMe && m.Chat != nil && m.Chat.channel().Type == event.ChannelDirect && m.Chat.isWith(self.Address)
}

// senderType returns Bot for the senders of text messages that are no persons.
func (m Message) senderType() event.SenderType {
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
func (m Message) addressed(self event.Self) event.Addressed {
	if self.Address != "" && slices.ContainsFunc(m.mentioned, func(address string) bool { return ChatName(address) == ChatName(self.Address) }) {
		return event.AddressedMention
	}
	if m.Chat == nil || m.Chat.channel().Type != event.ChannelDirect {
		return event.AddressedNone
	}
	if m.fromMe && !m.Chat.isWith(self.Address) {
		return event.AddressedNone
	}
	return event.AddressedDirect
}

// keyForm matches a delivery's idempotency key; see adapters.Post.
var keyForm = regexp.MustCompile(`^[a-z0-9]{1,25}$`)

// ownKey returns the tempGuid of one of our messages if it has the form of a delivery's key.
// Other clients of the server choose tempGuids too, so only the deliveries can tell whether
// it is a key.
func (m Message) ownKey() string {
	key, _, _ := strings.Cut(m.tempGUID, AttemptMark)
	if !m.fromMe || !keyForm.MatchString(key) {
		return ""
	}
	return key
}

// AttemptMark ends the delivery's key in a tempGuid. After it comes a part that differs in each
// attempt, because the server refuses a tempGuid as long as an earlier attempt is under way.
const AttemptMark = "."

// The substitutes for a sender without a name or an address.
const (
	meName      = "Me"
	MeAddress   = "me"
	unknownName = "Unknown"
	unknownID   = "unknown"
)

// Senders is the namespace of sender ids.
const Senders = "bb"

func (m Message) senderID(self event.Self) string {
	namespace := Senders + ":"
	switch address := ChatName(m.address()); {
	case m.fromMe && self.Address != "":
		return namespace + ChatName(self.Address)
	case m.fromMe:
		return namespace + MeAddress
	case address != "":
		return namespace + address
	}
	return namespace + unknownID
}

// address returns the other person's address. In a one-to-one chat, a message without a
// handle can only be from that person.
func (m Message) address() string {
	if m.handle.address == "" && m.Chat != nil && m.Chat.channel().Type == event.ChannelDirect {
		return ChatName(m.Chat.GUID)
	}
	return m.handle.address
}

// textServices are the services whose senders may claim any address.
var textServices = []string{"SMS", "RCS"}

// isText reports whether another person's message came as a text message.
func (m Message) isText() bool {
	service := m.handle.service
	if m.Chat != nil && !slices.Contains(textServices, service) {
		service, _, _ = strings.Cut(m.Chat.GUID, ";")
	}
	return !m.fromMe && slices.Contains(textServices, service)
}

// senderName returns the sender's displayed name. That of a text message says so, because it proves
// less than other messages who its sender is.
func (m Message) senderName(ctx context.Context, directory adapters.Directory) string {
	name := m.knownName(ctx, directory)
	if m.isText() {
		name += " (SMS)"
	}
	return name
}

// knownName returns the payload's name, else the name in the server's contacts, else the address.
func (m Message) knownName(ctx context.Context, directory adapters.Directory) string {
	if m.fromMe {
		return meName
	}
	if name := m.handle.Name(); name != "" {
		return name
	}
	address := m.address()
	if address == "" {
		return unknownName
	}
	if user, ok := directory.User(ctx, ChatName(address)); ok && strings.TrimSpace(user.DisplayName) != "" {
		return user.DisplayName
	}
	return address
}
