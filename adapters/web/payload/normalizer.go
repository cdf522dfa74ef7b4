// Package payload reads the bodies of the HTTP API and converts them to events.
//
// The body of a POST is the envelope. Its handler adds a message id, a thread id and the caller's
// identity before the durable accept, in the form that a client sends, so a recorded body can be
// replayed.
package payload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// Normalizer converts the bodies of POSTs to events. It has no state.
type Normalizer struct{}

var _ adapters.Normalizer = Normalizer{}

// Keys implements adapters.Normalizer. It checks the whole body, because the caller is still
// connected and can receive the faults.
func (Normalizer) Keys(envelope event.Envelope, _ adapters.Facts) event.Keys {
	b, metadata, err := read(envelope.Body)
	if err != nil {
		return event.Keys{Kind: event.KindMessage, Dedupe: adapters.BodyKey(envelope.Body), Result: event.Refuse(err)}
	}
	keys := event.Keys{
		Kind:      event.KindMessage,
		Thread:    ThreadKey(envelope.Workspace, b.ThreadID),
		Channel:   event.Channel{ID: b.ThreadID},
		MessageID: b.MessageID,
		Dedupe:    "message:" + b.MessageID,
	}
	if b.RunID != "" {
		keys.Dedupe = event.RunKey(b.ThreadID, b.RunID)
	}
	if b.ClientMessageID != "" {
		keys.MessageID = ""
		sender := metadata.SenderID
		if len(sender) > maxSender {
			sender = adapters.Digest([]byte(sender)) // keeps the key within the store's limits
		}
		keys.Dedupe = fmt.Sprintf("client:%s:%d:%s:%s", b.ThreadID, len(sender), sender, b.ClientMessageID)
	}
	return keys
}

// maxSender bounds a sender_id in a key, in bytes. A longer one is replaced by its hash.
const maxSender = 256

// Normalize implements adapters.Normalizer.
func (Normalizer) Normalize(_ context.Context, envelope event.Envelope, _ adapters.Directory) (event.Event, error) {
	b, metadata, err := read(envelope.Body)
	if err != nil {
		return event.Event{}, err
	}
	m := &event.Message{
		ClientMessageID: b.ClientMessageID,
		Thread:          ThreadKey(envelope.Workspace, b.ThreadID),
		Channel:         event.Channel{ID: b.ThreadID, Type: event.ChannelDirect},
		Content:         b.Content,
		Metadata:        metadata,
		SentAt:          envelope.ReceivedAt,
		Addressed:       event.AddressedDirect,
		Known:           b.Known,
		RunID:           b.RunID,
		RunInput:        b.RunInput,
	}
	names := func(e event.Extra) bool { return e.Key == event.KeyMentions }
	switch {
	case metadata.RecipientID != "" && slices.ContainsFunc(metadata.Extra, names):
		m.Addressed = event.AddressedMention
	case b.RunID != "":
		m.Addressed = event.AddressedCommand // also in a thread whose agents answer only mentions
	}
	if b.ClientMessageID == "" {
		m.ExternalID = b.MessageID
	}
	if m.Mentions = mentioned(metadata); b.TokenID != "" {
		m.LimitedAs = OwnSender(b.TokenID)
	}
	for _, a := range b.Attachments {
		m.Attachments = append(m.Attachments, a.Event())
	}
	if m.Passive = b.Passive; m.Passive && metadata.Passive != nil && !*metadata.Passive { // the two contradict each other
		m.Metadata.Passive = new(true)
		m.Metadata.Edited()
	}
	return event.Event{Kind: event.KindMessage, Message: m}, nil
}

// MaxMentions bounds the mentions of a message.
const MaxMentions = 50

// mentioned returns the actors that a message mentions, each once and in order, without the agent that
// it asks.
func mentioned(metadata event.Metadata) (list []string) {
	var actors []Actor
	for _, e := range metadata.Extra {
		if e.Key == event.KeyMentions && ReadActors(e.Value, &actors, MaxMentions) != "" {
			return nil // they are not those of the documents
		}
	}
	asked := AgentActor(strings.TrimPrefix(metadata.RecipientID, "bot:"))
	for _, actor := range actors {
		if actor != asked {
			list = append(list, string(actor))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// read reads a body that has a thread, an id and complete metadata, as the durable accept
// requires. Its error is event.FieldErrors.
func read(raw []byte) (Body, event.Metadata, error) {
	b, faults := Parse(raw)
	if Unreadable(faults) {
		return b, event.Metadata{}, faults
	}
	if len(faults) == 0 {
		faults.Check(b.ThreadID != "", "thread_id", "is required")
		faults.Check(b.ClientMessageID != "" || b.MessageID != "", "message_id", "is required if there is no client_message_id")
		faults = append(faults, b.JoinDispatch()...)
	}
	metadata, more := ParseMetadata(b.Metadata)
	return b, metadata, append(faults, more...).Err()
}

// ParseMetadata reads the metadata of a message, nil if it has none, and returns every fault.
func ParseMetadata(raw []byte) (m event.Metadata, faults event.FieldErrors) {
	if raw == nil {
		raw = []byte("{}")
	}
	m, err := event.ParseMetadata(raw)
	errors.As(err, &faults)
	return m, faults
}
