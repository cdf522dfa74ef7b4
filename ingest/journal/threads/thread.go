package threads

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// ThreadMode says which messages of a thread trigger runs.
type ThreadMode string

// The modes of threads.
const (
	ModeOpen           ThreadMode = "open"            // those that the policy admits
	ModeInvocationOnly ThreadMode = "invocation_only" // of those, only mentions of an agent
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

	Row int64 // its id in the store
}

// Cursor is the thread's position in the order of a client's threads.
func (t *Thread) Cursor() string { return Cursor(t.CreatedAt, t.Row) }

// Cursor is a position in the order of a time and a row.
func Cursor(at time.Time, row int64) string { return fmt.Sprintf("%d-%d", at.UnixMilli(), row) }

// ReadCursor is the reverse of cursor. An empty one is the position before all others. The error
// is event.FieldErrors.
func ReadCursor(before string) (at, row int64, err error) {
	if before == "" {
		return math.MaxInt64, math.MaxInt64, nil
	}
	if _, err := fmt.Sscanf(before, "%d-%d", &at, &row); err != nil {
		return 0, 0, event.FieldErrors{{Field: "before", Message: "must be next of the page before"}}
	}
	return at, row, nil
}

// threadColumns are the columns of threads that a Thread has; see dest.
const threadColumns = `id, uuid, workspace, key, mode, made_by, closed,
	CASE WHEN made_at > 0 THEN made_at ELSE (SELECT m.created_at FROM messages m WHERE m.thread = threads.id AND m.seq = 1) END, next_seq - 1`

// dest is the scan target for threadColumns.
func (t *Thread) dest() []any {
	return []any{&t.Row, &t.ID, &t.Workspace, (*string)(&t.Key), (*string)(&t.Mode), &t.MadeBy, &t.Closed, &t.CreatedAt, &t.Newest}
}

// MakeThread makes the thread n of a client of our API, before its first message, from the
// Workspace, Key, Mode, MadeBy and Closed of n. The client and the further participants take part in it.
// If there is a thread with the key already, MakeThread returns that one, which may be another
// client's, and false.
func (s *Threads) MakeThread(ctx context.Context, platform event.Platform, channel string, n Thread, participants ...string) (t Thread, made bool, err error) {
	n.ID, err = s.ThreadID(ctx, n.Key)
	if err != nil {
		return t, false, err
	}
	actors := slices.Concat([]string{n.MadeBy}, participants)
	slices.Sort(actors)
	made, err = storage.Write(ctx, s.db, storage.WriteOptions{Urgent: true, Thread: n.Key}, func(tx *storage.Txn) bool {
		var thread, now = int64(0), storage.Millis(s.db.Now())
		made := tx.Row([]any{&thread}, `INSERT INTO threads (key, uuid, workspace, platform, channel, mode, made_by, made_at, closed)
			SELECT $1, $2, $3, $4, $5, $6, $7, CAST($8 AS BIGINT), CAST($9 AS BIGINT) WHERE true`+unusedUUID+` ON CONFLICT (key) DO NOTHING RETURNING id`,
			string(n.Key), n.ID, n.Workspace, string(platform), channel, string(n.Mode), n.MadeBy, now, storage.Number(n.Closed))
		for _, actor := range actors {
			if made {
				addParticipant(tx, thread, n.Workspace, actor, now)
			}
		}
		return made
	})
	if err == nil && made {
		NewsChanged(s.db, n.Workspace, actors...)
	}
	if err == nil {
		t, err = s.Thread(ctx, n.Workspace, n.ID)
	}
	return t, made, err
}

// Thread returns a thread of a workspace. It fails with ErrNotFound if there is none.
func (s *Threads) Thread(ctx context.Context, workspace, id string) (t Thread, err error) {
	err = s.db.One(ctx, t.dest(), `SELECT `+threadColumns+` FROM threads WHERE uuid = $1 AND workspace = $2`, id, workspace)
	return t, err
}

// LastActive returns the thread with the newest message among those in which an actor takes part; one without messages counts from
// its making. It fails with ErrNotFound if there is none.
func (s *Threads) LastActive(ctx context.Context, workspace, actor string) (t Thread, err error) {
	err = s.db.One(ctx, t.dest(), `SELECT `+threadColumns+` FROM threads WHERE id IN (SELECT thread FROM participants WHERE workspace = $1 AND actor = $2)
		ORDER BY coalesce((SELECT m.created_at FROM messages m WHERE m.thread = threads.id AND m.seq = threads.next_seq - 1), made_at) DESC, id DESC LIMIT 1`, workspace, actor)
	return t, err
}

// Spot is the place of a thread on its platform.
type Spot struct {
	Thread
	Channel string // empty if no payload has named it
	Parent  string // of the channel; see event.Channel
}

const spotColumns = threadColumns + `, channel, parent`

// dest is the scan target for spotColumns.
func (s *Spot) dest() []any { return append(s.Thread.dest(), &s.Channel, &s.Parent) }

// SpotOf returns a thread of a workspace with its place. It fails with ErrNotFound if there is none.
func (s *Threads) SpotOf(ctx context.Context, workspace, id string) (spot Spot, err error) {
	err = s.db.One(ctx, spot.dest(), `SELECT `+spotColumns+` FROM threads WHERE uuid = $1 AND workspace = $2`, id, workspace)
	return spot, err
}

// SpotAt returns the thread with a row, with its place. The transaction fails with ErrNotFound if there is none.
func SpotAt(tx *storage.Txn, thread int64) (spot Spot) {
	if !tx.Row(spot.dest(), `SELECT `+spotColumns+` FROM threads WHERE id = $1`, thread) {
		tx.Fail(storage.ErrNotFound)
	}
	return spot
}

// ThreadChannel returns the platform's id of a thread's channel; empty if no payload has
// named it.
func (s *Threads) ThreadChannel(ctx context.Context, thread int64) (channel string, err error) {
	_, err = s.db.Row(ctx, []any{&channel}, `SELECT channel FROM threads WHERE id = $1`, thread)
	return channel, err
}
