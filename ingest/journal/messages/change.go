package messages

import (
	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Save stores a changed message.
func Save(tx *storage.Txn, m *Message) {
	tx.Do(`UPDATE messages SET seq = nullif(CAST($2 AS BIGINT), 0), trigger = $3, content = $4, quotes = $5, metadata = $6,
		revision = $7, files = $8, envelopes = $9, edited_at = $10, reason = $11, agent = $12, files_until = $13 WHERE row = $1`,
		m.Row, m.Seq, string(m.Trigger), m.Content, packQuotes(tx, m.Quotes), storage.Bytes(m.Metadata), m.Revision, m.FileCount, m.Envelopes, storage.Millis(m.EditedAt), m.Reason, m.Agent, storage.Millis(m.FilesUntil))
}

// Empty deletes the words of a message; a tombstone stays.
func Empty(tx *storage.Txn, m *Message, now int64) {
	m.Content, m.Quotes, m.Reactions, m.DeletedAt = "", Quotes{}, nil, storage.Instant(now)
	tx.Do(`UPDATE messages SET content = '', quotes = '', reactions = '', files = 0, run_input = '', deleted_at = $2,
		trigger = CASE WHEN run IS NULL THEN 'none' ELSE trigger END WHERE row = $1`, m.Row, now)
}

// EmptyMetadata removes the words of a message that are in its metadata.
func EmptyMetadata(tx *storage.Txn, m *Message) {
	metadata := MetadataOf(tx, m)
	if metadata.DropWords() {
		tx.Do(`UPDATE messages SET metadata = $2 WHERE row = $1`, m.Row, metadata.Bytes())
	}
}

// SetReactions stores the reactions of a message, and the envelopes with its words.
func SetReactions(tx *storage.Txn, m *Message, reactions []event.Reaction) {
	m.Reactions = reactions
	tx.Do(`UPDATE messages SET reactions = $2, envelopes = $3 WHERE row = $1`, m.Row, tx.Pack(reactions, len(reactions) == 0), m.Envelopes)
}

// SetOurs makes a message that was read one of our agent's.
func SetOurs(tx *storage.Txn, row int64) {
	tx.Do(`UPDATE messages SET author = 'agent' WHERE row = $1`, row)
}

// Carries notes that a stored message quotes the words of another one, or that its envelope has them. It
// reports whether that one is deleted.
func Carries(tx *storage.Txn, workspace, id string, row int64) (isDeleted bool) {
	tx.Row([]any{&isDeleted}, `INSERT INTO carried (workspace, message_id, message) VALUES ($1, $2, $3)
		ON CONFLICT (workspace, message_id, message) DO UPDATE SET message = excluded.message
		RETURNING EXISTS (SELECT 1 FROM messages m WHERE m.workspace = $1 AND m.external_id = $2 AND m.deleted_at > 0)`, workspace, id, row)
	return isDeleted
}

// ChangeQuotes changes the quotations of a message, by one of its ids, in the messages that quote it. It
// removes a quotation for which change returns false. It returns the messages that quote it.
func ChangeQuotes(tx *storage.Txn, workspace, externalID, platformID string, change func(q *event.Quote) (keep bool)) []Message {
	list := storage.Rows(tx, func(m *Message) []any { return []any{&m.Row, &m.Thread, &m.quotes, &m.Envelopes} },
		`SELECT row, thread, quotes, envelopes FROM messages WHERE row IN (SELECT message FROM carried WHERE workspace = $1 AND message_id IN ($2, $3))`,
		workspace, externalID, platformID)
	for i := range list {
		m := &list[i]
		unpack(tx, m)
		isGone := func(q *event.Quote) bool {
			return (q.ExternalID == externalID || q.ExternalID == platformID) && !change(q)
		}
		if q := m.Quotes.Quoted; q != nil && isGone(q) {
			m.Quotes.Quoted = nil
		}
		var left []event.Quote
		for _, q := range m.Quotes.Forwarded {
			if !isGone(&q) {
				left = append(left, q)
			}
		}
		m.Quotes.Forwarded = left
		tx.Do(`UPDATE messages SET quotes = $2 WHERE row = $1`, m.Row, packQuotes(tx, m.Quotes))
	}
	return list
}

// CorrectFiles ends the waits for files of messages that end later than a time, because the clock led.
func CorrectFiles(tx *storage.Txn, now, late int64) {
	tx.Do(`UPDATE messages SET files_until = $1 WHERE files_until > 0 AND run IS NULL AND files_until > $2`, now, late)
}
