package payload

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
	// Dispatch stands beside the metadata, and JoinDispatch puts it there.
	Dispatch Dispatch
}

// ReadBody reads a body. A source beside the metadata becomes a part of the metadata. Its
// error is event.FieldErrors and names every faulty member. event.ParseMetadata checks the
// metadata.
func ReadBody(raw []byte) (Body, error) {
	b, faults := Parse(raw)
	return b, faults.Err()
}

// Parse is ReadBody for a caller that adds faults of its own.
func Parse(raw []byte) (b Body, faults event.FieldErrors) {
	content, source := false, ""
	faults = Members(raw, func(m event.Extra) string {
		content = content || m.Key == "content"
		return b.Set(m, &source)
	})
	if Unreadable(faults) {
		return b, faults
	}
	faults.Check(content, "content", "is required; it may be empty")
	return b, append(faults, b.MergeSource(source)...)
}

// MergeSource adds the source beside the metadata to the metadata. The other values keep
// their bytes.
func (b *Body) MergeSource(source string) (faults event.FieldErrors) {
	if source == "" {
		return nil
	}
	members, err := event.ReadObject(b.object())
	if err != nil {
		return nil // the check of the metadata reports it
	}
	merged := append([]byte(`{"source":`), Encode(source)...)
	for _, m := range members {
		switch {
		case m.Key != "source":
			merged = append(append(append(append(merged, ','), Encode(m.Key)...), ':'), m.Value...)
		case string(m.Value) != "null":
			var inside string
			faults.Check(Text(m.Value, &inside) == "" && inside == source, "source", "must not differ from metadata.source")
		}
	}
	b.Metadata = append(merged, '}')
	return faults
}

// JoinDispatch adds the members of Dispatch to the metadata.
func (b *Body) JoinDispatch() (faults event.FieldErrors) {
	b.Metadata, faults = b.Dispatch.Join(b.object())
	b.Dispatch = nil
	return faults
}

// object returns the metadata, which may be absent.
func (b *Body) object() []byte {
	if b.Metadata == nil {
		return []byte("{}")
	}
	return b.Metadata
}

// optional are the members for which null means the same as their absence.
var optional = []string{"metadata", "thread_id", "client_message_id", "source", "passive"}

// Set reads one member of the object. It returns the fault's text, or "".
func (b *Body) Set(m event.Extra, source *string) string {
	if string(m.Value) == "null" && slices.Contains(optional, m.Key) {
		return ""
	}
	switch m.Key {
	case "content":
		return Text(m.Value, &b.Content)
	case "metadata":
		b.Metadata = m.Value
	case "thread_id":
		if fault := Text(m.Value, &b.ThreadID); fault != "" {
			return fault
		}
		b.ThreadID = strings.ToLower(b.ThreadID)
		if !IsUUID(b.ThreadID) {
			return "must be a UUID such as 6ba7b810-9dad-41d1-80b4-00c04fd430c8; leave it out for a new thread"
		}
	case "client_message_id":
		if fault := Text(m.Value, &b.ClientMessageID); fault != "" {
			return fault
		}
		if b.ClientMessageID == "" || len(b.ClientMessageID) > maxClientID {
			return fmt.Sprintf("must have 1 to %d bytes", maxClientID)
		}
	case "message_id":
		return Text(m.Value, &b.MessageID)
	case "source":
		return Text(m.Value, source)
	case "attachments":
		return b.setAttachments(m.Value)
	case "known":
		if json.Unmarshal(m.Value, &b.Known) != nil {
			return "must be an object of base_seq and latest_seen_seq"
		}
	case "token_id":
		return Text(m.Value, &b.TokenID)
	case event.DispatchType, event.DispatchConfig:
		return b.Dispatch.Set(m)
	case "run_id":
		return Text(m.Value, &b.RunID)
	case "run_input":
		b.RunInput = m.Value
	case "passive":
		if json.Unmarshal(m.Value, &b.Passive) != nil {
			return "must be true or false"
		}
	default:
		return "is not a key of a message; the known keys are content, metadata, thread_id, client_message_id, passive, source, attachments, dispatch_type and dispatch_config"
	}
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
	raw = ValidUTF8(raw)
	b, err := ReadBody(raw)
	if err != nil || b.ClientMessageID != "" || b.MessageID != "" {
		return raw
	}
	b.MessageID = NewID()
	return b.Bytes()
}
