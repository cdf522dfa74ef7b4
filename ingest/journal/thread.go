package journal

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"parley/ingest/event"
)

// Thread is a thread as clients of our API see it.
type Thread struct {
	ID        string // its UUID
	Workspace string
	Key       event.ThreadKey
	Mode      ThreadMode
	MadeBy    string // the client that made and owns it; empty: its first message made it
	Closed    bool   // it is for its participants alone, and not for every agent outside Parley
	CreatedAt time.Time
	Newest    int64 // its highest thread_seq; 0: it has no message

	row int64
}

// Cursor is the thread's position in the order of a client's threads.
func (t *Thread) Cursor() string { return cursor(t.CreatedAt, t.row) }

// cursor is a position in the order of a time and a row.
func cursor(at time.Time, row int64) string { return fmt.Sprintf("%d-%d", at.UnixMilli(), row) }

// readCursor is the reverse of cursor. An empty one is the position before all others. The error
// is event.FieldErrors.
func readCursor(before string) (at, row int64, err error) {
	if before == "" {
		return math.MaxInt64, math.MaxInt64, nil
	}
	if _, err := fmt.Sscanf(before, "%d-%d", &at, &row); err != nil {
		return 0, 0, event.FieldErrors{{Field: "before", Message: "must be next of the page before"}}
	}
	return at, row, nil
}

const threadColumns = `id, uuid, workspace, key, mode, made_by, closed,
	CASE WHEN made_at > 0 THEN made_at ELSE (SELECT m.created_at FROM messages m WHERE m.thread = threads.id AND m.seq = 1) END, next_seq - 1`

func (t *Thread) dest() []any {
	return []any{&t.row, &t.ID, &t.Workspace, (*string)(&t.Key), (*string)(&t.Mode), &t.MadeBy, &t.Closed, &t.CreatedAt, &t.Newest}
}

// MakeThread makes the thread n of a client of our API, before its first message, from the
// Workspace, Key, Mode, MadeBy and Closed of n. The client and the further participants take part in it.
// If there is a thread with the key already, MakeThread returns that one, which may be another
// client's, and false.
func (j *Journal) MakeThread(ctx context.Context, platform event.Platform, channel string, n Thread, participants ...string) (t Thread, made bool, err error) {
	n.ID, err = j.ThreadID(ctx, n.Key)
	if err != nil {
		return t, false, err
	}
	actors := slices.Concat([]string{n.MadeBy}, participants)
	slices.Sort(actors)
	made, err = write(ctx, j, WriteOptions{Urgent: true, Thread: n.Key}, func(tx *txn) bool {
		var thread, now = int64(0), millis(j.now())
		made := tx.row([]any{&thread}, `INSERT INTO threads (key, uuid, workspace, platform, channel, mode, made_by, made_at, closed)
			SELECT $1, $2, $3, $4, $5, $6, $7, CAST($8 AS BIGINT), CAST($9 AS BIGINT) WHERE true`+unusedUUID+` ON CONFLICT (key) DO NOTHING RETURNING id`,
			string(n.Key), n.ID, n.Workspace, string(platform), channel, string(n.Mode), n.MadeBy, now, number(n.Closed))
		for _, actor := range actors {
			if made {
				tx.addParticipant(thread, n.Workspace, actor, now)
			}
		}
		return made
	})
	if err == nil && made {
		j.newsChanged(n.Workspace, actors...)
	}
	if err == nil {
		t, err = j.Thread(ctx, n.Workspace, n.ID)
	}
	return t, made, err
}

// Thread returns a thread of a workspace. It fails with ErrNotFound if there is none.
func (j *Journal) Thread(ctx context.Context, workspace, id string) (t Thread, err error) {
	err = j.one(ctx, t.dest(), `SELECT `+threadColumns+` FROM threads WHERE uuid = $1 AND workspace = $2`, id, workspace)
	return t, err
}

// NewestMadeBy returns the newest thread that a client has made. It fails with ErrNotFound if there
// is none.
func (j *Journal) NewestMadeBy(ctx context.Context, workspace, madeBy string) (t Thread, err error) {
	err = j.one(ctx, t.dest(), `SELECT `+threadColumns+` FROM threads WHERE workspace = $1 AND made_by = $2 AND made_by <> ''
		ORDER BY made_at DESC, id DESC LIMIT 1`, workspace, madeBy)
	return t, err
}

// ThreadChanges returns the messages up to a thread_seq that were edited or deleted at a time or
// later, in the order of their changes. The plus keeps to the indexes of changed messages.
func (j *Journal) ThreadChanges(ctx context.Context, t *Thread, upTo int64, since time.Time, limit int) ([]Listed, error) {
	return read(ctx, j, func(tx *txn) []Listed {
		return tx.listed(`m.thread = $1 AND +m.seq <= $2 AND (m.edited_at > 0 AND m.edited_at >= $3 OR m.deleted_at > 0 AND m.deleted_at >= $3)
			ORDER BY CASE WHEN m.deleted_at > m.edited_at THEN m.deleted_at ELSE m.edited_at END, m.seq LIMIT CAST($4 AS BIGINT)`,
			t.row, upTo, millis(since), int64(limit))
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
func (j *Journal) Senders(ctx context.Context, t *Thread) ([]Sender, error) {
	return list(ctx, j, func(s *Sender) []any { return []any{&s.ID, (*string)(&s.Author), &s.Metadata} },
		`SELECT sender_id, author, metadata FROM messages
		WHERE thread = $1 AND seq IN (SELECT max(seq) FROM messages WHERE thread = $1 AND seq > $2 GROUP BY sender_id) ORDER BY seq`, t.row, t.Newest-sendersOf)
}
