package messages

import (
	"bytes"
	"context"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// At returns the message with a row, without its files; nil for none.
func At(tx *storage.Txn, row int64) *Message { return find(tx, `m.row = $1`, row) }

// EmptyName removes the author's name from a message that Empty has emptied, and what is left in its metadata besides ids. Its reason says so.
func EmptyName(tx *storage.Txn, m *Message) {
	metadata := MetadataOf(tx, m)
	metadata.DropWords()
	metadata.DropName()
	m.Metadata, m.Reason = metadata.Bytes(), event.ReasonForgotten
	tx.Do(`UPDATE messages SET metadata = $2, reason = $3 WHERE row = $1`, m.Row, m.Metadata, m.Reason)
}

// Said returns the messages of a run that its agent or Parley has written and that are not deleted: its answer, the rows before that
// and its notices. A message that the run answers is none.
func Said(tx *storage.Txn, thread int64, run string) (list []Message) {
	list = findAll(tx, `m.run = $1 AND m.deleted_at = 0 AND (m.author IN ('agent', 'tool') OR m.author = 'system' AND m.trigger <> 'run') ORDER BY m.seq`, run)
	rows := findAll(tx, `m.thread = $1 AND m.author = 'tool' AND m.deleted_at = 0 AND m.run IS NULL
		AND m.seq > coalesce((SELECT base_seq FROM messages WHERE run = $2 AND context_after IS NOT NULL), 0)
		AND m.seq < coalesce((SELECT seq FROM messages WHERE run = $2 AND author = 'agent'), 9223372036854775807) ORDER BY m.seq`, thread, run)
	for _, row := range rows {
		if bytes.Contains(row.Metadata, []byte(run)) { // it is of the run, and not of one beside it
			list = append(list, row)
		}
	}
	return list
}

// InThread returns the rows of the messages of a thread that are not deleted, by its key, and the thread.
func InThread(ctx context.Context, db *storage.DB, key event.ThreadKey) (thread int64, rows []int64, err error) {
	type row struct{ thread, row int64 }
	list, err := storage.List(ctx, db, func(r *row) []any { return []any{&r.thread, &r.row} },
		`SELECT m.thread, m.row FROM messages m JOIN threads t ON t.id = m.thread WHERE t.key = $1 AND m.deleted_at = 0 ORDER BY m.row`, string(key))
	for _, r := range list {
		thread, rows = r.thread, append(rows, r.row)
	}
	return thread, rows, err
}

// Placed is the row of a message in its thread.
type Placed struct{ Thread, Row int64 }

// Older returns at most limit messages that were sent before a time and are not deleted, the oldest first. It leaves out those that an
// unfinished run has or that wait for one.
func Older(ctx context.Context, db *storage.DB, before time.Time, limit int) ([]Placed, error) {
	return storage.List(ctx, db, func(p *Placed) []any { return []any{&p.Thread, &p.Row} }, `SELECT m.thread, m.row FROM messages m JOIN threads t ON t.id = m.thread
		WHERE m.deleted_at = 0 AND m.sent_at <= $1 AND (t.run_id IS NULL OR m.run IS NULL OR m.run <> t.run_id)
			AND NOT (m.trigger = 'run' AND m.run IS NULL AND t.turn_since IS NOT NULL)
		ORDER BY m.sent_at LIMIT CAST($2 AS BIGINT)`, storage.Millis(before), int64(limit))
}

// Answering returns a message of each run that has ended since a time and that answers an emptied message; see EmptyName.
func Answering(ctx context.Context, db *storage.DB, since time.Time) ([]Placed, error) {
	return storage.List(ctx, db, func(p *Placed) []any { return []any{&p.Thread, &p.Row} }, `SELECT m.thread, max(m.row) FROM runs r JOIN messages m ON m.run = r.id
		WHERE r.ended_at >= $1 AND m.deleted_at > 0 AND m.reason = $2 AND m.author NOT IN ('agent', 'tool') GROUP BY r.id, m.thread`, storage.Millis(since), event.ReasonForgotten)
}

// Rewrite stores the changed quotations, reactions, metadata and content of a message.
func Rewrite(tx *storage.Txn, m *Message) {
	tx.Do(`UPDATE messages SET content = $2, quotes = $3, reactions = $4, metadata = $5 WHERE row = $1`,
		m.Row, m.Content, packQuotes(tx, m.Quotes), tx.Pack(m.Reactions, len(m.Reactions) == 0), storage.Bytes(m.Metadata))
}

// Forgotten is a person of a workspace who was forgotten.
type Forgotten struct {
	Workspace, SenderID string
	At                  time.Time
	Position            int64 // row of the last message that was looked at; 0: what has the person's words has not been emptied yet
}

// Forget notes that a person is to be forgotten.
func Forget(ctx context.Context, db *storage.DB, workspace, sender string) error {
	return db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`INSERT INTO forgotten (workspace, sender_id, at, position) VALUES ($1, $2, $3, 0)
			ON CONFLICT (workspace, sender_id) DO UPDATE SET at = excluded.at, position = 0`, workspace, sender, storage.Millis(db.Now()))
	})
}

// SetForgotten stores up to which message a forgotten person was looked for.
func SetForgotten(ctx context.Context, db *storage.DB, f Forgotten) error {
	return db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`UPDATE forgotten SET position = $3 WHERE workspace = $1 AND sender_id = $2 AND at = $4`, f.Workspace, f.SenderID, f.Position, storage.Millis(f.At))
	})
}

// ToForget returns the people whose words have not been emptied yet, or who were forgotten after a time.
func ToForget(ctx context.Context, db *storage.DB, after time.Time) ([]Forgotten, error) {
	return storage.List(ctx, db, func(f *Forgotten) []any { return []any{&f.Workspace, &f.SenderID, &f.At, &f.Position} },
		`SELECT workspace, sender_id, at, position FROM forgotten WHERE position = 0 OR at > $1`, storage.Millis(after))
}

// IsForgotten reports whether the author of a message was forgotten after it was sent.
func IsForgotten(tx *storage.Txn, workspace, sender string, sent time.Time) bool {
	return tx.Has(`SELECT 1 FROM forgotten WHERE workspace = $1 AND sender_id = $2 AND at >= $3`, workspace, sender, storage.Millis(sent))
}

// WorkspacesOf returns the workspaces in which messages of a sender are stored.
func WorkspacesOf(ctx context.Context, db *storage.DB, sender string) ([]string, error) {
	return storage.List(ctx, db, storage.Self[string], `SELECT DISTINCT workspace FROM messages WHERE sender_id = $1 ORDER BY workspace`, sender)
}

// CountAnswers counts the answers of agents to the messages of a sender.
func CountAnswers(ctx context.Context, db *storage.DB, workspace, sender string) (n int64, err error) {
	err = db.One(ctx, []any{&n}, `SELECT count(*) FROM messages a WHERE a.author = 'agent' AND a.deleted_at = 0
		AND a.run IN (SELECT run FROM messages WHERE workspace = $1 AND sender_id = $2 AND run IS NOT NULL)`, workspace, sender)
	return n, err
}

// Scanned is a message as a look through all messages needs it.
type Scanned struct {
	Message
	Quoted, Reacted string // JSON of its quotations and of its reactions
}

// scanPage bounds the messages of a page of such a look.
const scanPage = 500

// Scan returns the next messages of a workspace after a row, in the order of their rows.
func Scan(tx *storage.Txn, workspace string, after int64) []Scanned {
	return storage.UpTo(tx, func(m *Scanned) int { return m.Size() + len(m.Quoted) + len(m.Reacted) }, func(m *Scanned) []any {
		return []any{&m.Row, &m.Thread, &m.Seq, &m.SenderID, (*string)(&m.Author), &m.Reason, &m.Content, &m.Quoted, &m.Reacted, &m.Metadata, &m.FileCount, &m.SentAt, &m.CreatedAt, &m.DeletedAt}
	}, `SELECT row, thread, seq, sender_id, author, reason, content, quotes, reactions, metadata, files, sent_at, created_at, deleted_at
		FROM messages WHERE workspace = $1 AND row > $2 ORDER BY row LIMIT CAST($3 AS BIGINT)`, workspace, after, int64(scanPage))
}

// SaidBy returns the rows, the contents, the quotes and the metadata of the next messages of a sender after a row, in the order of their rows.
func SaidBy(tx *storage.Txn, workspace, sender string, after int64) []Message {
	list := storage.UpTo(tx, (*Message).Size, func(m *Message) []any { return []any{&m.Row, &m.Content, &m.Metadata, &m.quotes} },
		`SELECT row, content, metadata, quotes FROM messages WHERE workspace = $1 AND sender_id = $2 AND row > $3 ORDER BY row LIMIT CAST($4 AS BIGINT)`, workspace, sender, after, int64(scanPage))
	for i := range list {
		unpack(tx, &list[i])
	}
	return list
}

// Placing is a message with its workspace and its thread.
type Placing struct {
	Message
	Workspace, Channel, ThreadID string
}

// WrittenBy returns the next messages of a sender after a row that are not deleted, in the order of their rows, without their files.
func WrittenBy(tx *storage.Txn, sender string, after int64) []Placing {
	list := storage.UpTo(tx, func(p *Placing) int { return p.Size() }, func(p *Placing) []any {
		return append(p.dest(), &p.Workspace, &p.Channel, &p.ThreadID)
	}, `SELECT `+messageColumns+`, m.workspace, t.channel, t.uuid FROM messages m JOIN threads t ON t.id = m.thread
		WHERE m.sender_id = $1 AND m.row > $2 AND m.seq IS NOT NULL AND m.deleted_at = 0 ORDER BY m.row LIMIT CAST($3 AS BIGINT)`, sender, after, int64(scanPage))
	for i := range list {
		unpack(tx, &list[i].Message)
	}
	return list
}
