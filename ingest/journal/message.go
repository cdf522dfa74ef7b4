package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"parley/ingest/event"
)

// Message is a stored message as it stands now.
type Message struct {
	Row             int64
	Thread          int64
	Seq             int64 // thread_seq; 0 for one that is only noted
	ExternalID      string
	ClientMessageID string
	SenderID        string
	Author          Author
	Trigger         Trigger
	Content         string
	Quotes          Quotes
	Metadata        []byte // the object's bytes, as they came
	Version         int64
	Origin          Origin
	Revision        string
	Attachments     []Attachment // filled by who needs them
	Reactions       []event.Reaction
	SentAt          time.Time
	CreatedAt       time.Time
	EditedAt        time.Time
	DeletedAt       time.Time
	Run             int64 // 0: none

	files     int64
	envelopes string
}

// ID is the id that the outside knows the message by.
func (m *Message) ID() string {
	if m.ExternalID != "" {
		return m.ExternalID
	}
	return m.ClientMessageID
}

// Quotes are the messages that stand inside another.
type Quotes struct {
	Quoted    *event.Quote  `json:"quoted,omitempty"`
	Forwarded []event.Quote `json:"forwarded,omitempty"`
}

// Attachment is a message's file and what became of its copy.
type Attachment struct {
	event.Attachment
	Row   int64
	State AttachmentState
	// Bucket and Path are where the copy is kept, once it is stored.
	Bucket, Path string
}

// AttachmentState is how far the copy of a file has come.
type AttachmentState string

// The states of an attachment.
const (
	AttachmentPending     AttachmentState = "pending"
	AttachmentStored      AttachmentState = "stored"
	AttachmentUnavailable AttachmentState = "unavailable"
)

const messageColumns = `id, thread, coalesce(seq, 0), coalesce(external_id, ''), coalesce(client_message_id, ''), sender_id,
	author, trigger, content, quotes, metadata, version, origin, revision, files, reactions, envelopes,
	sent_at, created_at, edited_at, deleted_at, coalesce(run, 0)`

// messageRow is where a row of messageColumns is scanned to.
type messageRow struct {
	m                                         Message
	author, trigger, origin                   string
	quotes, reactions                         string
	sentAt, createdAt, editedAt, deletedAtRaw int64
}

func (r *messageRow) dest() []any {
	m := &r.m
	return []any{&m.Row, &m.Thread, &m.Seq, &m.ExternalID, &m.ClientMessageID, &m.SenderID,
		&r.author, &r.trigger, &m.Content, &r.quotes, &m.Metadata, &m.Version, &r.origin, &m.Revision, &m.files, &r.reactions, &m.envelopes,
		&r.sentAt, &r.createdAt, &r.editedAt, &r.deletedAtRaw, &m.Run}
}

func (r *messageRow) message() (Message, error) {
	m := r.m
	m.Author, m.Trigger, m.Origin = Author(r.author), Trigger(r.trigger), Origin(r.origin)
	m.SentAt, m.CreatedAt = instant(r.sentAt), instant(r.createdAt)
	m.EditedAt, m.DeletedAt = instant(r.editedAt), instant(r.deletedAtRaw)
	if err := unpack(r.quotes, &m.Quotes); err != nil {
		return m, fmt.Errorf("message %d: quotes: %w", m.Row, err)
	}
	if err := unpack(r.reactions, &m.Reactions); err != nil {
		return m, fmt.Errorf("message %d: reactions: %w", m.Row, err)
	}
	return m, nil
}

// oneMessage reads the first message of a query's conditions; nil for none.
func oneMessage(tx Tx, where string, args ...any) (*Message, error) {
	var row messageRow
	found, err := tx.Row(row.dest(), `SELECT `+messageColumns+` FROM messages WHERE `+where, args...)
	if err != nil || !found {
		return nil, err
	}
	m, err := row.message()
	return &m, err
}

// manyMessages reads the messages of a query's conditions, with their files.
func manyMessages(tx Tx, where string, args ...any) ([]Message, error) {
	var row messageRow
	return readMessages(tx, &row, row.dest(), messageColumns, where, args...)
}

// manyLines reads of messages what a transcript shows, with their files.
func manyLines(tx Tx, where string, args ...any) ([]Message, error) {
	var row messageRow
	return readMessages(tx, &row, row.line(), lineColumns, where, args...)
}

// lineColumns are the columns of a message that a transcript shows.
const lineColumns = `id, coalesce(seq, 0), coalesce(external_id, ''), sender_id, author, content, quotes, metadata, version, files,
	sent_at, edited_at, coalesce(run, 0)`

func (r *messageRow) line() []any {
	m := &r.m
	return []any{&m.Row, &m.Seq, &m.ExternalID, &m.SenderID, &r.author, &m.Content, &r.quotes, &m.Metadata, &m.Version, &m.files,
		&r.sentAt, &r.editedAt, &m.Run}
}

// readMessages scans every row into dest, which points into row.
func readMessages(tx Tx, row *messageRow, dest []any, columns, where string, args ...any) ([]Message, error) {
	var out []Message
	err := tx.Rows(func(scan func(...any) error) error {
		if err := scan(dest...); err != nil {
			return err
		}
		m, err := row.message()
		if len(out) == cap(out) && cap(out) >= 2 {
			out = slices.Grow(out, 2*spansAtOnce)
		}
		out = append(out, m)
		return err
	}, `SELECT `+columns+` FROM messages WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if err := out[i].load(tx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// load reads the message's files, if it has any.
func (m *Message) load(tx Tx) error {
	if m.files == 0 {
		return nil
	}
	m.Attachments = nil
	return tx.Rows(func(scan func(...any) error) error {
		var a Attachment
		var state string
		if err := scan(&a.Row, &a.ID, &a.Name, &a.MimeType, &a.Size, &state, &a.Bucket, &a.Path); err != nil {
			return err
		}
		a.State = AttachmentState(state)
		m.Attachments = append(m.Attachments, a)
		return nil
	}, `SELECT id, external_id, name, mime_type, size, state, bucket, path FROM attachments WHERE message = ? ORDER BY part`, m.Row)
}

// pack writes a value as the JSON that a column holds; what is empty is "".
func pack(value any, empty bool) (string, error) {
	if empty {
		return "", nil
	}
	raw, err := json.Marshal(value)
	return string(raw), err
}

// unpack is the reverse of pack.
func unpack(column string, into any) error {
	if column == "" {
		return nil
	}
	return json.Unmarshal([]byte(column), into)
}

// withEnvelope adds an id to a message's list of envelopes.
func withEnvelope(list string, id int64) string {
	if list == "" {
		return strconv.FormatInt(id, 10)
	}
	return list + "," + strconv.FormatInt(id, 10)
}
