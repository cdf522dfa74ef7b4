package threads

import (
	"context"

	"parley/ingest/journal/storage"
)

// addParticipant adds an actor to a thread, and gives it the news. It returns false if the actor takes
// part already.
func addParticipant(tx *storage.Txn, thread int64, workspace, actor string, now int64) bool {
	if tx.Exec(`INSERT INTO participants (thread, actor, workspace, made_at) SELECT id, $2, workspace, made_at FROM threads WHERE id = $1
		ON CONFLICT (thread, actor) DO NOTHING`, thread, actor) == 0 {
		return false
	}
	AddNews(tx, workspace, actor, thread, 0, now)
	return true
}

// AddParticipant lets an actor take part in a thread. It returns false if it does already.
func (s *Threads) AddParticipant(ctx context.Context, t *Thread, actor string) (added bool, err error) {
	added, err = storage.Write(ctx, s.db, storage.WriteOptions{Urgent: true, Thread: t.Key}, func(tx *storage.Txn) bool {
		return addParticipant(tx, t.Row, t.Workspace, actor, storage.Millis(s.db.Now()))
	})
	if added && err == nil {
		NewsChanged(s.db, t.Workspace, actor)
	}
	return added, err
}

// RemoveParticipant ends an actor's part in a thread, and wakes the thread's readers. It fails with
// ErrNotFound if the actor has none.
func (s *Threads) RemoveParticipant(ctx context.Context, t *Thread, actor string) error {
	err := s.db.Change(ctx, t.Key, func(tx *storage.Txn) {
		tx.Must(storage.ErrNotFound, `DELETE FROM participants WHERE thread = $1 AND actor = $2`, t.Row, actor)
	})
	if err == nil {
		ThreadChanged(s.db, t.Row, true)
	}
	return err
}

// TakesPart reports whether an actor takes part in a thread.
func (s *Threads) TakesPart(ctx context.Context, t *Thread, actor string) (bool, error) {
	return s.db.Row(ctx, []any{new(int64)}, `SELECT 1 FROM participants WHERE thread = $1 AND actor = $2`, t.Row, actor)
}

// ThreadFor returns a thread of a workspace, and whether an actor takes part in it. It fails with ErrNotFound if there is none.
func (s *Threads) ThreadFor(ctx context.Context, workspace, id, actor string) (t Thread, takesPart bool, err error) {
	err = s.db.One(ctx, append(t.dest(), &takesPart), `SELECT `+threadColumns+`, EXISTS (SELECT 1 FROM participants WHERE thread = threads.id AND actor = $3)
		FROM threads WHERE uuid = $1 AND workspace = $2`, id, workspace, actor)
	return t, takesPart, err
}

// Participants returns the actors that take part in a thread, in the order of their names.
func (s *Threads) Participants(ctx context.Context, t *Thread) ([]string, error) {
	return storage.List(ctx, s.db, storage.Self[string], `SELECT actor FROM participants WHERE thread = $1 ORDER BY actor`, t.Row)
}

// SetThreadMode changes which messages of a thread trigger runs. It holds for messages that are
// recorded later.
func (s *Threads) SetThreadMode(ctx context.Context, t *Thread, mode ThreadMode) error {
	return s.db.Change(ctx, t.Key, func(tx *storage.Txn) {
		tx.Must(storage.ErrNotFound, `UPDATE threads SET mode = $2 WHERE id = $1`, t.Row, string(mode))
	})
}

// ThreadsOf returns the threads in which an actor takes part, the newest first. If open is set, they
// include those of all clients that are not for their participants alone. It begins behind the thread
// with the given Cursor; the first page has none.
func (s *Threads) ThreadsOf(ctx context.Context, workspace, actor string, open bool, before string, limit int) ([]Thread, error) {
	at, row, err := ReadCursor(before)
	if err != nil {
		return nil, err
	}
	return storage.List(ctx, s.db, (*Thread).dest, `SELECT `+threadColumns+` FROM threads WHERE id IN (
			SELECT thread FROM (SELECT thread FROM participants WHERE workspace = $1 AND actor = $5 AND (made_at, thread) < ($3, $4)
				ORDER BY made_at DESC, thread DESC LIMIT CAST($2 AS BIGINT)) AS named
			UNION ALL SELECT id FROM (SELECT id FROM threads WHERE workspace = $1 AND made_by <> '' AND closed = 0 AND (made_at, id) < ($3, $4) AND $6 = 1
				ORDER BY made_at DESC, id DESC LIMIT CAST($2 AS BIGINT)) AS open)
		ORDER BY made_at DESC, id DESC LIMIT CAST($2 AS BIGINT)`, workspace, int64(limit), at, row, actor, storage.Number(open))
}

// AddNews gives an actor the news of a thread, or of a message. The actor's counter is locked from here
// on, so that its news have the order of their commits. A transaction locks threads and budgets before
// it, and several actors in the order of their names.
func AddNews(tx *storage.Txn, workspace, actor string, thread, message, now int64) {
	var seq int64
	tx.Row([]any{&seq}, `INSERT INTO actors (workspace, actor, last_seq) VALUES ($1, $2, 1)
		ON CONFLICT (workspace, actor) DO UPDATE SET last_seq = actors.last_seq + 1 RETURNING last_seq`, workspace, actor)
	tx.Do(`INSERT INTO news (workspace, actor, seq, thread, message, at) VALUES ($1, $2, $3, $4, $5, $6)`, workspace, actor, seq, thread, message, now)
}

// News is one fact for an actor: it takes part in a thread, or a message of a thread mentions it.
type News struct {
	Seq     int64
	Thread  Thread
	Message int64 // its row; 0: the actor began to take part
	Reads   bool  // the actor may read the thread
}

// NewsOf returns the news of an actor after a seq, in order. If open is set, the actor reads each thread that is not for its participants
// alone.
func NewsOf(tx *storage.Txn, workspace, actor string, open bool, after int64, limit int) []News {
	return storage.Rows(tx, func(n *News) []any { return append(n.Thread.dest(), &n.Seq, &n.Message, &n.Reads) },
		`SELECT `+threadColumns+`, n.seq, n.message, CASE WHEN closed = 0 AND $5 = 1
			OR EXISTS (SELECT 1 FROM participants p WHERE p.thread = threads.id AND p.actor = $2) THEN 1 ELSE 0 END
		FROM (SELECT seq, thread, message FROM news WHERE workspace = $1 AND actor = $2 AND seq > $3 ORDER BY seq LIMIT CAST($4 AS BIGINT)) AS n
		JOIN threads ON threads.id = n.thread ORDER BY n.seq`, workspace, actor, after, int64(limit), storage.Number(open))
}
