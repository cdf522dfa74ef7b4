package journal

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/storage"
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
	Attachments     []files.Attachment // filled if the caller needs them
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
func packQuotes(tx *storage.Txn, q Quotes) string {
	return tx.Pack(q, q.Quoted == nil && len(q.Forwarded) == 0 && len(q.Names) == 0)
}

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
func unpack(tx *storage.Txn, m *Message) {
	if err := errors.Join(storage.Unpack(m.quotes, &m.Quotes), storage.Unpack(m.reactions, &m.Reactions)); err != nil {
		tx.Fail(fmt.Errorf("message %d: quotes or reactions: %w", m.Row, err))
	}
}

// metadata reads the metadata of a stored message.
func metadata(tx *storage.Txn, m *Message) event.Metadata {
	metadata, err := event.ReadMetadata(m.Metadata)
	if err != nil {
		tx.Fail(fmt.Errorf("message %d: metadata: %w", m.Row, err))
	}
	return metadata
}

// find reads the first message that meets a condition, without its files; nil for none.
func find(tx *storage.Txn, where string, args ...any) *Message {
	var m Message
	if !tx.Row(m.dest(), `SELECT `+messageColumns+` FROM messages m WHERE `+where, args...) {
		return nil
	}
	unpack(tx, &m)
	return &m
}

// findAll reads the messages that meet a condition, with their files.
func findAll(tx *storage.Txn, where string, args ...any) []Message {
	return complete(tx, storage.Rows(tx, (*Message).dest, `SELECT `+messageColumns+` FROM messages m WHERE `+where, args...))
}

// lines reads the columns of messages that a transcript shows, with their files.
func lines(tx *storage.Txn, where string, args ...any) []Message {
	return complete(tx, storage.Rows(tx, (*Message).line, `SELECT `+lineColumns+` FROM messages m WHERE `+where, args...))
}

// complete unpacks scanned messages, reads their files, and returns them.
func complete(tx *storage.Txn, messages []Message) []Message {
	for i := range messages {
		unpack(tx, &messages[i])
		loadFiles(tx, &messages[i])
	}
	return messages
}

// loadFiles reads the message's files, if it has any.
func loadFiles(tx *storage.Txn, m *Message) {
	if m.files > 0 {
		m.Attachments = files.Of(tx, m.Row)
	}
}

// addEnvelope notes that an envelope contains words of the message.
func (m *Message) addEnvelope(id int64) {
	if m.envelopes != "" {
		m.envelopes += ","
	}
	m.envelopes += strconv.FormatInt(id, 10)
}
