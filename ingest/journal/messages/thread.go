package messages

import (
	"context"
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// ThreadChanges returns the messages up to a thread_seq that were edited or deleted at a time or
// later, in the order of their changes. The plus keeps to the indexes of changed messages.
func (m *Messages) ThreadChanges(ctx context.Context, t *threads.Thread, upTo int64, since time.Time, limit int) ([]Listed, error) {
	return storage.Read(ctx, m.db, func(tx *storage.Txn) []Listed {
		return list(tx, `m.thread = $1 AND +m.seq <= $2 AND (m.edited_at > 0 AND m.edited_at >= $3 OR m.deleted_at > 0 AND m.deleted_at >= $3)
			ORDER BY CASE WHEN m.deleted_at > m.edited_at THEN m.deleted_at ELSE m.edited_at END, m.seq LIMIT CAST($4 AS BIGINT)`,
			t.Row, upTo, storage.Millis(since), int64(limit))
	})
}

// Sender is the sender of messages of a thread.
type Sender struct {
	ID       string // sender_id
	Author   Author
	Metadata []byte // of its newest message
}

// sendersOf bounds the messages whose senders Senders returns.
const sendersOf = 1000

// Senders returns the senders of a thread's newest 1,000 messages, those of the newest last.
func (m *Messages) Senders(ctx context.Context, t *threads.Thread) ([]Sender, error) {
	return storage.List(ctx, m.db, func(s *Sender) []any { return []any{&s.ID, (*string)(&s.Author), &s.Metadata} },
		`SELECT sender_id, author, metadata FROM messages
		WHERE thread = $1 AND seq IN (SELECT max(seq) FROM messages WHERE thread = $1 AND seq > $2 AND author <> 'tool' GROUP BY sender_id) ORDER BY seq`, t.Row, t.Newest-sendersOf)
}
