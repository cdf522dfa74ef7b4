package listing

import (
	"cmp"
	"context"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Thread is a thread as an operator sees it.
type Thread struct {
	Row       int64
	ID        string // its UUID
	Key       event.ThreadKey
	Workspace string
	Platform  event.Platform
	Channel   string
	// Room says that the thread is in a room. The others are direct or group messages, or of a
	// channel whose type is not known.
	Room    bool
	Agent   string    // of the turn that is due, or of the unfinished run; empty for none
	Run     string    // the unfinished run; empty for none
	LastAt  time.Time // when its last message was recorded; zero if none was
	Newest  int64     // its highest thread_seq
	Pending int64     // envelopes without a result yet
	First   messages.Message
}

// Cursor is the thread's position in the order of AllThreads.
func (t *Thread) Cursor() string { return threads.Cursor(t.LastAt, t.Row) }

func (t *Thread) size() int { return t.First.Size() }

func (t *Thread) dest() []any {
	return []any{&t.Row, &t.ID, (*string)(&t.Key), &t.Workspace, (*string)(&t.Platform), &t.Channel, &t.Room, &t.Agent, &t.Run, &t.LastAt, &t.Newest, &t.Pending,
		&t.First.Content, &t.First.Metadata, &t.First.Version}
}

// threadQuery reads threads, t in the condition, each with its first message that has a text. The
// channel of a thread that is a channel itself, as on Discord, has a parent.
const threadQuery = `SELECT t.id, t.uuid, t.key, t.workspace, t.platform, t.channel,
	EXISTS (SELECT 1 FROM channels c WHERE c.workspace = t.workspace AND c.id IN (t.channel, t.parent) AND c.type = 'room'),
	CASE WHEN t.run_id IS NOT NULL OR t.turn_since IS NOT NULL THEN t.agent ELSE '' END, coalesce(t.run_id, ''), t.last_at,
	t.next_seq - 1, t.pending, m.content, m.metadata, coalesce(m.version, 1)
	FROM threads t LEFT JOIN messages m ON m.row = (SELECT f.row FROM messages f WHERE f.thread = t.id AND f.seq IS NOT NULL
		AND f.content <> '' AND f.author <> 'system' ORDER BY f.seq LIMIT 1) WHERE `

// AllThreads returns the threads of workspaces that have messages, the last active first. It begins
// after the thread with the given Cursor; the first page has none. more reports whether more threads
// may follow.
func (l *Listing) AllThreads(ctx context.Context, workspaces []string, before string, limit int) (list []Thread, more bool, err error) {
	at, row, err := threads.ReadCursor(before)
	if err != nil {
		return nil, false, err
	}
	list, err = storage.Read(ctx, l.db, func(tx *storage.Txn) (list []Thread) {
		more = false
		for _, workspace := range workspaces {
			page := storage.UpTo(tx, (*Thread).size, (*Thread).dest, threadQuery+`t.workspace = $1 AND t.last_at > 0 AND (t.last_at, t.id) < ($3, $4)
				ORDER BY t.last_at DESC, t.id DESC LIMIT CAST($2 AS BIGINT)`, workspace, int64(limit), at, row)
			more = more || storage.IsFull(page, limit, (*Thread).size)
			list = newest(append(list, page...), limit)
		}
		return list
	})
	return list, more, err
}

// newest returns the first threads in the order of AllThreads.
func newest(list []Thread, limit int) []Thread {
	slices.SortFunc(list, func(a, b Thread) int { return cmp.Or(b.LastAt.Compare(a.LastAt), cmp.Compare(b.Row, a.Row)) })
	return list[:min(limit, len(list))]
}

// ThreadOf returns the thread with a UUID or a key. It fails with ErrNotFound if there is none.
func (l *Listing) ThreadOf(ctx context.Context, ref string) (t Thread, err error) {
	err = l.db.One(ctx, t.dest(), threadQuery+`t.id = coalesce((SELECT id FROM threads WHERE key = $1), (SELECT max(id) FROM threads WHERE uuid = $1))`, ref)
	return t, err
}
