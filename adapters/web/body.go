// Package web implements the workspaces of Parley's own HTTP API.
//
// The body of a POST is the envelope. The handler adds a message id, a thread id and the
// caller's identity before the durable accept. It writes them in the same form, so a recorded
// body can be replayed.
package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"parley/ingest/event"
)

// maxClientID bounds a client's own message id, in bytes.
const maxClientID = 128

// Body is the body of a POST with a message.
type Body struct {
	Content  string
	Metadata json.RawMessage // nil if absent
	ThreadID string          // a UUID in lower case; empty if absent
	// ClientMessageID is the caller's idempotency key; empty if absent.
	ClientMessageID string
	Passive         bool
	// MessageID is the id of a message without a ClientMessageID.
	MessageID   string
	Attachments []Attachment
	// Known is set for the messages of agents outside Parley.
	Known *event.Known
	// TokenID is the id of the token whose holder writes in its own name, under whichever of its ids;
	// empty for any other sender. Only the handlers set it.
	TokenID string
	// RunID and RunInput are those of event.Message. Only the handler of runs sets them.
	RunID    string
	RunInput json.RawMessage
}

// ReadBody reads a body. A source beside the metadata becomes a part of the metadata. Its
// error is event.FieldErrors and names every faulty member. event.ParseMetadata checks the
// metadata.
func ReadBody(raw []byte) (Body, error) {
	b, faults := readBody(raw)
	return b, faults.Err()
}

func readBody(raw []byte) (b Body, faults event.FieldErrors) {
	content, source := false, ""
	faults = readMembers(raw, func(m event.Extra) string {
		content = content || m.Key == "content"
		return b.set(m, &source)
	})
	if unreadable(faults) {
		return b, faults
	}
	faults.Check(content, "content", "is required; it may be empty")
	return b, append(faults, b.mergeSource(source)...)
}

// readMembers reads a JSON object. read returns the fault of a member, or "".
func readMembers(raw []byte, read func(m event.Extra) string) (faults event.FieldErrors) {
	members, err := event.ReadObject(raw)
	if err != nil && !errors.As(err, &faults) {
		return event.FieldErrors{{Field: whole, Message: err.Error()}}
	}
	for _, m := range members {
		fault := read(m)
		faults.Check(fault == "", m.Key, fault)
	}
	return faults
}

// mergeSource adds the source beside the metadata to the metadata. The other values keep
// their bytes.
func (b *Body) mergeSource(source string) (faults event.FieldErrors) {
	if source == "" {
		return nil
	}
	members, err := event.ReadObject(b.object())
	if err != nil {
		return nil // the check of the metadata reports it
	}
	merged := append([]byte(`{"source":`), encode(source)...)
	for _, m := range members {
		switch {
		case m.Key != "source":
			merged = append(append(append(append(merged, ','), encode(m.Key)...), ':'), m.Value...)
		case string(m.Value) != "null":
			var inside string
			faults.Check(text(m.Value, &inside) == "" && inside == source, "source", "must not differ from metadata.source")
		}
	}
	b.Metadata = append(merged, '}')
	return faults
}

// object returns the metadata, which may be absent.
func (b *Body) object() []byte {
	if b.Metadata == nil {
		return []byte("{}")
	}
	return b.Metadata
}

// encode returns the JSON of a text.
func encode(s string) []byte {
	raw, _ := json.Marshal(s) // a text always encodes
	return raw
}

// whole is the field of a fault of the whole body.
const whole = "body"

// unreadable reports whether the only fault is that the body is not a JSON object. Then the
// caller must not report missing members.
func unreadable(faults event.FieldErrors) bool { return len(faults) == 1 && faults[0].Field == whole }

// optional are the members for which null means the same as their absence.
var optional = []string{"metadata", "thread_id", "client_message_id", "source", "passive"}

// set reads one member of the object. It returns the fault's text, or "".
func (b *Body) set(m event.Extra, source *string) string {
	if string(m.Value) == "null" && slices.Contains(optional, m.Key) {
		return ""
	}
	switch m.Key {
	case "content":
		return text(m.Value, &b.Content)
	case "metadata":
		b.Metadata = m.Value
	case "thread_id":
		if fault := text(m.Value, &b.ThreadID); fault != "" {
			return fault
		}
		b.ThreadID = strings.ToLower(b.ThreadID)
		if !isUUID(b.ThreadID) {
			return "must be a UUID such as 6ba7b810-9dad-41d1-80b4-00c04fd430c8; leave it out for a new thread"
		}
	case "client_message_id":
		if fault := text(m.Value, &b.ClientMessageID); fault != "" {
			return fault
		}
		if b.ClientMessageID == "" || len(b.ClientMessageID) > maxClientID {
			return fmt.Sprintf("must have 1 to %d bytes", maxClientID)
		}
	case "message_id":
		return text(m.Value, &b.MessageID)
	case "source":
		return text(m.Value, source)
	case "attachments":
		return b.setAttachments(m.Value)
	case "known":
		if json.Unmarshal(m.Value, &b.Known) != nil {
			return "must be an object of base_seq and latest_seen_seq"
		}
	case "token_id":
		return text(m.Value, &b.TokenID)
	case "run_id":
		return text(m.Value, &b.RunID)
	case "run_input":
		b.RunInput = m.Value
	case "passive":
		if json.Unmarshal(m.Value, &b.Passive) != nil {
			return "must be true or false"
		}
	default:
		return "is not a key of a message; the known keys are content, metadata, thread_id, client_message_id, passive, source and attachments"
	}
	return ""
}

func text(value json.RawMessage, into *string) string {
	var s *string
	if json.Unmarshal(value, &s) != nil || s == nil {
		return "must be a string"
	}
	*into = event.Text(*s)
	return ""
}

// Bytes returns the body in the form that ReadBody reads, with the metadata byte for byte.
func (b Body) Bytes() []byte {
	raw, err := json.Marshal(struct {
		Content         string       `json:"content"`
		ThreadID        string       `json:"thread_id,omitempty"`
		ClientMessageID string       `json:"client_message_id,omitempty"`
		MessageID       string       `json:"message_id,omitempty"`
		Passive         bool         `json:"passive,omitempty"`
		Attachments     []Attachment `json:"attachments,omitempty"`
		Known           *event.Known `json:"known,omitempty"`
		TokenID         string       `json:"token_id,omitempty"`
		RunID           string       `json:"run_id,omitempty"`
	}{b.Content, b.ThreadID, b.ClientMessageID, b.MessageID, b.Passive, b.Attachments, b.Known, b.TokenID, b.RunID})
	if err != nil {
		return nil // a struct of strings, numbers and bools always marshals
	}
	for _, m := range []event.Extra{{Key: `,"metadata":`, Value: b.Metadata}, {Key: `,"run_input":`, Value: b.RunInput}} {
		if m.Value != nil { // byte for byte
			raw = append(append(append(raw[:len(raw)-1], m.Key...), m.Value...), '}')
		}
	}
	return raw
}

// Stamp makes a recorded body what the handler accepts durably: it replaces invalid UTF-8, and
// adds a message id if the body has no id.
func Stamp(raw []byte) []byte {
	raw = validUTF8(raw)
	b, err := ReadBody(raw)
	if err != nil || b.ClientMessageID != "" || b.MessageID != "" {
		return raw
	}
	b.MessageID = newID()
	return b.Bytes()
}

// derivedID is the fault of a thread's UUID that only Parley makes.
const derivedID = "must not be a UUID of version 5: Parley makes those itself"

// isUUID reports whether a text is a UUID in its usual form.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

func newID() string { return uuid.Must(uuid.NewV7()).String() }
