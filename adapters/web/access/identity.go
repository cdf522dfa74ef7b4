package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/adapters/web/payload"
	"parley/assembly/lookalike"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/threads"
)

// Complete reads a body and adds the members that the caller may omit.
func (c Caller) Complete(raw []byte) (payload.Body, error) {
	b, faults := payload.Parse(raw)
	if payload.Unreadable(faults) {
		return b, faults
	}
	faults.Check(b.TokenID == "", "token_id", "is not a key of a message")
	b.MessageID = ""
	if b.ClientMessageID == "" {
		b.MessageID = payload.NewID()
	}
	if b.ThreadID == "" {
		b.ThreadID = payload.NewID()
	}
	faults.Check(!threads.IsDerived(b.ThreadID), "thread_id", payload.DerivedID)
	faults.Check(b.Known == nil, "known", "is allowed only on the route of agent-messages")
	if len(b.Dispatch) > 0 {
		faults.Check(c.any || c.Token.Deliver.isSet(), b.Dispatch[0].Key, "is allowed only for a token with senders: any or with deliver")
		if faults = append(faults, b.JoinDispatch()...); len(faults) > 0 {
			return b, faults
		}
	}
	metadata, more := c.metadata(b.Metadata)
	b.Metadata, b.TokenID = metadata, c.Token.named(c.Workspace, metadata)
	faults = append(append(faults, more...), b.Unsent()...)
	if len(faults) > 0 {
		return b, faults
	}
	if c.Token.Deliver.isSet() && b.TokenID == "" {
		b.Metadata = sentBy(metadata, c.Token.ID)
	}
	return b, Recipient(metadata).Err()
}

// sentBy returns checked metadata with the token of the sender, which gets the answer.
func sentBy(metadata []byte, token string) []byte {
	members, _ := event.ReadObject(metadata)
	return event.WriteObject(append(members, event.Extra{Key: event.KeySentBy, Value: payload.Encode(token)}))
}

// named returns the token's id if a message has one of the ids of the token's holder, else "": the
// limits count a holder once.
func (t *Token) named(workspace string, metadata []byte) string {
	m, err := event.ReadMetadata(metadata)
	if err == nil && t.isHolder(workspace, m.SenderID) {
		return t.ID
	}
	return ""
}

// isHolder reports whether a sender_id is one of those of the token's holder.
func (t *Token) isHolder(workspace, sender string) bool {
	return sender == payload.OwnSender(t.ID) || sender == string(t.ActorIn(workspace))
}

// Recipient returns a fault if a message names a recipient that is no bot. A message to a bot that
// is no agent of the workspace is context.
func Recipient(metadata []byte) (faults event.FieldErrors) {
	m, err := event.ReadMetadata(metadata)
	bot, isBot := strings.CutPrefix(m.RecipientID, "bot:")
	faults.Check(err == nil && (m.RecipientID == "" || isBot && bot != ""), "metadata.recipient_id", "must be bot:<id>, or be left out")
	return faults
}

// metadata returns the metadata to store for a message of this caller.
func (c Caller) metadata(raw []byte) ([]byte, event.FieldErrors) {
	if raw == nil && c.bare {
		return c.Own(event.Metadata{}), nil
	}
	if !c.any {
		given, err := event.ReadMetadata(raw)
		var faults event.FieldErrors
		if errors.As(err, &faults) {
			return nil, faults
		}
		if faults = c.RefusedClaims(&given); len(faults) > 0 {
			return nil, faults
		}
		raw = c.Own(given)
	}
	m, faults := payload.ParseMetadata(raw)
	if c.any && len(faults) == 0 {
		faults = m.RefusedTo(event.Integration)
		faults.Check(!ReadsLike(m.SenderID, ownAuthors), "metadata.sender_id", "must not begin with the name of one of Parley's own authors")
		faults.Check(!ReadsLike(m.SenderID, bridges), "metadata.sender_id", "must not begin with bridge: only the program of a bridge workspace names its people")
	}
	return raw, append(faults, card.Check(raw, "metadata")...)
}

// bridges is the namespace of the people of other programs, who prove them by tokens of their own.
var bridges = []string{string(event.Bridge)}

// ownAuthors are the namespaces of Parley's own authors.
var ownAuthors = []string{"operator", "schedule", "system"}

// ReadsLike reports whether a source, or the namespace of a sender_id, reads like one of names, whatever letters it is written in.
func ReadsLike(id string, names []string) bool {
	namespace, _, _ := strings.Cut(lookalike.Seen(id), ":")
	namespace = strings.TrimSpace(namespace)
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(namespace, name) })
}

// RefusedClaims returns a fault for every key with which the caller claims another identity,
// or that only an integration may set.
func (c Caller) RefusedClaims(m *event.Metadata) event.FieldErrors {
	var faults event.FieldErrors
	fixed := func(field, given, want string) {
		faults.Check(given == "" || given == want, "metadata."+field, fmt.Sprintf("must be %q for this token, or be left out", want))
	}
	fixed("source", m.Source, string(event.Web))
	fixed("sender_id", m.SenderID, c.Sender)
	fixed("sender_display_name", m.SenderDisplayName, c.Token.Name)
	fixed("sender_type", string(m.SenderType), string(c.kind))
	by := event.Client
	if c.Token.Deliver.URL != "" {
		by |= event.Receiver
	}
	return append(faults, m.RefusedTo(by)...)
}

// Own adds the caller's identity to the metadata and returns its bytes.
func (c Caller) Own(m event.Metadata) []byte {
	m.Source, m.SenderID, m.SenderDisplayName, m.SenderType = string(event.Web), c.Sender, c.Token.Name, c.kind
	m.Edited()
	return m.Bytes()
}
