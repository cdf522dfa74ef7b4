package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/ingest/event"
)

// Message is a stored message in its current state.
type Message struct {
	Row             int64
	UUID            string // made before the durable accept
	Thread          int64
	Seq             int64 // thread_seq; 0 for a message of which only the external id is stored
	ExternalID      string
	ClientMessageID string
	ClientRunID     string // the client's own id of the run that it asks for; empty for none
	SenderID        string
	Author          Author
	Trigger         Trigger
	Reason          string // of the trigger
	Agent           string // the agent that it asks; empty for none
	Content         string
	Quotes          Quotes
	Metadata        []byte // the original bytes of the object
	Version         int64
	Origin          Origin
	Revision        string
	Attachments     []Attachment // filled if the caller needs them
	Reactions       []event.Reaction
	SentAt          time.Time // the earlier of the platform's time and the arrival
	CreatedAt       time.Time
	EditedAt        time.Time
	DeletedAt       time.Time
	Run             string // id of the run that answers it, or that it replies to; empty for none

	files             int64
	filesUntil        time.Time // until when its turn waits for its files; zero if it has them
	envelopes         string
	quotes, reactions string // the columns of Quotes and Reactions
}

// ID returns the external id of the message.
func (m *Message) ID() string {
	if m.ExternalID != "" {
		return m.ExternalID
	}
	return m.ClientMessageID
}

// Quotes are the messages inside another message, and the names behind the tokens of its own content.
type Quotes struct {
	Quoted    *event.Quote  `json:"quoted,omitempty"`
	Forwarded []event.Quote `json:"forwarded,omitempty"`
	Names     event.Names   `json:"names,omitempty"`
}

// quotesOf returns the quotes of a message.
func quotesOf(m *event.Message) Quotes { return Quotes{m.Quoted, m.Forwarded, m.Names} }

// packQuotes returns the column that holds quotes as JSON.
func (tx *txn) packQuotes(q Quotes) string {
	return tx.pack(q, q.Quoted == nil && len(q.Forwarded) == 0 && len(q.Names) == 0)
}

// Attachment is a message's file and the state of its copy.
type Attachment struct {
	event.Attachment
	Row   int64
	State AttachmentState
	// Bucket and Path are the place of the stored copy.
	Bucket, Path string
}

// AttachmentState is the state of the copy of a file.
type AttachmentState string

// The states of an attachment.
const (
	AttachmentPending     AttachmentState = "pending"
	AttachmentStored      AttachmentState = "stored"
	AttachmentUnavailable AttachmentState = "unavailable"
)

const messageColumns = `m.row, m.id, m.thread, m.seq, m.external_id, m.client_message_id, m.sender_id,
	m.author, m.trigger, m.reason, m.agent, m.content, m.quotes, m.metadata, m.version, m.origin, m.revision, m.files, m.files_until, m.reactions, m.envelopes,
	m.sent_at, m.created_at, m.edited_at, m.deleted_at, m.run`

// dest is the scan target for messageColumns.
func (m *Message) dest() []any {
	return []any{&m.Row, &m.UUID, &m.Thread, &m.Seq, &m.ExternalID, &m.ClientMessageID, &m.SenderID,
		(*string)(&m.Author), (*string)(&m.Trigger), &m.Reason, &m.Agent, &m.Content, &m.quotes, &m.Metadata, &m.Version, (*string)(&m.Origin), &m.Revision,
		&m.files, &m.filesUntil, &m.reactions, &m.envelopes, &m.SentAt, &m.CreatedAt, &m.EditedAt, &m.DeletedAt, &m.Run}
}

// lineColumns are the columns of a message that a transcript shows.
const lineColumns = `m.row, m.id, m.seq, m.external_id, m.sender_id, m.author, m.agent, m.content, m.quotes, m.metadata,
	m.version, m.files, m.sent_at, m.edited_at, m.deleted_at, m.run, m.client_run_id`

// line is the scan target for lineColumns.
func (m *Message) line() []any {
	return []any{&m.Row, &m.UUID, &m.Seq, &m.ExternalID, &m.SenderID, (*string)(&m.Author), &m.Agent, &m.Content, &m.quotes, &m.Metadata,
		&m.Version, &m.files, &m.SentAt, &m.EditedAt, &m.DeletedAt, &m.Run, &m.ClientRunID}
}

// unpack sets the fields that are JSON in the columns of a message.
func (tx *txn) unpack(m *Message) {
	if err := errors.Join(unpack(m.quotes, &m.Quotes), unpack(m.reactions, &m.Reactions)); err != nil {
		tx.fail(fmt.Errorf("message %d: quotes or reactions: %w", m.Row, err))
	}
}

// metadata reads the metadata of a stored message.
func (tx *txn) metadata(m *Message) event.Metadata {
	metadata, err := event.ReadMetadata(m.Metadata)
	if err != nil {
		tx.fail(fmt.Errorf("message %d: metadata: %w", m.Row, err))
	}
	return metadata
}

// find reads the first message that meets a condition, without its files; nil for none.
func (tx *txn) find(where string, args ...any) *Message {
	var m Message
	if !tx.row(m.dest(), `SELECT `+messageColumns+` FROM messages m WHERE `+where, args...) {
		return nil
	}
	tx.unpack(&m)
	return &m
}

// findAll reads the messages that meet a condition, with their files.
func (tx *txn) findAll(where string, args ...any) []Message {
	return tx.complete(rows(tx, (*Message).dest, `SELECT `+messageColumns+` FROM messages m WHERE `+where, args...))
}

// lines reads the columns of messages that a transcript shows, with their files.
func (tx *txn) lines(where string, args ...any) []Message {
	return tx.complete(rows(tx, (*Message).line, `SELECT `+lineColumns+` FROM messages m WHERE `+where, args...))
}

// complete unpacks scanned messages, reads their files, and returns them.
func (tx *txn) complete(messages []Message) []Message {
	for i := range messages {
		tx.unpack(&messages[i])
		tx.loadFiles(&messages[i])
	}
	return messages
}

// loadFiles reads the message's files, if it has any.
func (tx *txn) loadFiles(m *Message) {
	if m.files > 0 {
		m.Attachments = rows(tx, func(a *Attachment) []any {
			return []any{&a.Row, &a.ID, &a.Name, &a.MimeType, &a.Size, &a.Type, &a.DurationMS, &a.Words, (*string)(&a.State), &a.Bucket, &a.Path}
		}, `SELECT id, external_id, name, mime_type, size, type, duration_ms, words, state, bucket, path FROM attachments WHERE message = $1 ORDER BY part`, m.Row)
	}
}

// pack returns a value as the JSON of a column. The column is "" if the value is empty.
func (tx *txn) pack(value any, empty bool) string {
	if empty {
		return ""
	}
	raw, err := json.Marshal(value)
	tx.fail(err)
	return string(raw)
}

// unpack is the reverse of pack.
func unpack(column string, into any) error {
	if column == "" {
		return nil
	}
	return json.Unmarshal([]byte(column), into)
}

// addEnvelope notes that an envelope contains words of the message.
func (m *Message) addEnvelope(id int64) {
	if m.envelopes != "" {
		m.envelopes += ","
	}
	m.envelopes += strconv.FormatInt(id, 10)
}
