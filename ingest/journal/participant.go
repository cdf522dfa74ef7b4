package journal

import (
	"context"

	"parley/ingest/event"
)

// addParticipant adds an actor to a thread, and gives it the news. It returns false if the actor takes
// part already.
func (tx *txn) addParticipant(thread int64, workspace, actor string, now int64) bool {
	if tx.exec(`INSERT INTO participants (thread, actor, workspace, made_at) SELECT id, $2, workspace, made_at FROM threads WHERE id = $1
		ON CONFLICT (thread, actor) DO NOTHING`, thread, actor) == 0 {
		return false
	}
	tx.addNews(workspace, actor, thread, 0, now)
	return true
}

// AddParticipant lets an actor take part in a thread. It returns false if it does already.
func (j *Journal) AddParticipant(ctx context.Context, t *Thread, actor string) (added bool, err error) {
	added, err = write(ctx, j, WriteOptions{Urgent: true, Thread: t.Key}, func(tx *txn) bool {
		return tx.addParticipant(t.row, t.Workspace, actor, millis(j.now()))
	})
	if added && err == nil {
		j.newsChanged(t.Workspace, actor)
	}
	return added, err
}

// RemoveParticipant ends an actor's part in a thread, and wakes the thread's readers. It fails with
// ErrNotFound if the actor has none.
func (j *Journal) RemoveParticipant(ctx context.Context, t *Thread, actor string) error {
	err := j.change(ctx, t.Key, func(tx *txn) {
		tx.must(ErrNotFound, `DELETE FROM participants WHERE thread = $1 AND actor = $2`, t.row, actor)
	})
	if err == nil {
		j.threadChanged(t.row, true)
	}
	return err
}

// TakesPart reports whether an actor takes part in a thread.
func (j *Journal) TakesPart(ctx context.Context, t *Thread, actor string) (bool, error) {
	return j.row(ctx, []any{new(int64)}, `SELECT 1 FROM participants WHERE thread = $1 AND actor = $2`, t.row, actor)
}

// Participants returns the actors that take part in a thread, in the order of their names.
func (j *Journal) Participants(ctx context.Context, t *Thread) ([]string, error) {
	return list(ctx, j, self[string], `SELECT actor FROM participants WHERE thread = $1 ORDER BY actor`, t.row)
}

// SetThreadMode changes which messages of a thread trigger runs. It holds for messages that are
// recorded later.
func (j *Journal) SetThreadMode(ctx context.Context, t *Thread, mode ThreadMode) error {
	return j.change(ctx, t.Key, func(tx *txn) {
		tx.must(ErrNotFound, `UPDATE threads SET mode = $2 WHERE id = $1`, t.row, string(mode))
	})
}

// ThreadsOf returns the threads in which an actor takes part, the newest first. If open is set, they
// include those of all clients that are not for their participants alone. It begins behind the thread
// with the given Cursor; the first page has none.
func (j *Journal) ThreadsOf(ctx context.Context, workspace, actor string, open bool, before string, limit int) ([]Thread, error) {
	at, row, err := readCursor(before)
	if err != nil {
		return nil, err
	}
	return list(ctx, j, (*Thread).dest, `SELECT `+threadColumns+` FROM threads WHERE id IN (
			SELECT thread FROM (SELECT thread FROM participants WHERE workspace = $1 AND actor = $5 AND (made_at, thread) < ($3, $4)
				ORDER BY made_at DESC, thread DESC LIMIT CAST($2 AS BIGINT)) AS named
			UNION ALL SELECT id FROM (SELECT id FROM threads WHERE workspace = $1 AND made_by <> '' AND closed = 0 AND (made_at, id) < ($3, $4) AND $6 = 1
				ORDER BY made_at DESC, id DESC LIMIT CAST($2 AS BIGINT)) AS open)
		ORDER BY made_at DESC, id DESC LIMIT CAST($2 AS BIGINT)`, workspace, int64(limit), at, row, actor, number(open))
}

// News is one fact for an actor: it takes part in a thread, or a message of a thread mentions it.
type News struct {
	Seq    int64 // 1, 2, 3 … of the actor; some may be missing
	Thread Thread
	// Message mentions the actor; nil: the actor began to take part.
	Message *Listed
	// Void says that there is nothing to tell any more: the message was deleted, or the actor may not
	// read the thread.
	Void bool

	message int64
	reads   bool
}

func (n *News) dest() []any { return append(n.Thread.dest(), &n.Seq, &n.message, &n.reads) }

// NewsOf returns the news of an actor after a seq, in order. If open is set, the actor reads each
// thread that is not for its participants alone. A page ends at PageBytes.
func (j *Journal) NewsOf(ctx context.Context, workspace, actor string, open bool, after int64, limit int) ([]News, error) {
	return read(ctx, j, func(tx *txn) []News {
		page := rows(tx, (*News).dest, `SELECT `+threadColumns+`, n.seq, n.message, CASE WHEN closed = 0 AND $5 = 1
				OR EXISTS (SELECT 1 FROM participants p WHERE p.thread = threads.id AND p.actor = $2) THEN 1 ELSE 0 END
			FROM (SELECT seq, thread, message FROM news WHERE workspace = $1 AND actor = $2 AND seq > $3 ORDER BY seq LIMIT CAST($4 AS BIGINT)) AS n
			JOIN threads ON threads.id = n.thread ORDER BY n.seq`, workspace, actor, after, int64(limit), number(open))
		bytes := 0
		for i := range page {
			n := &page[i]
			n.Void = !n.reads
			if n.Void || n.message == 0 {
				continue
			}
			found := tx.listed(`m.row = $1 AND m.deleted_at = 0`, n.message)
			if n.Void = len(found) == 0; n.Void {
				continue
			}
			n.Message = &found[0]
			if bytes += n.Message.Size(); bytes >= PageBytes {
				return page[:i+1]
			}
		}
		return page
	})
}

// addNews gives an actor the news of a thread, or of a message. The actor's counter is locked from here
// on, so that its news have the order of their commits. A transaction locks threads and budgets before
// it, and several actors in the order of their names.
func (tx *txn) addNews(workspace, actor string, thread, message, now int64) {
	var seq int64
	tx.row([]any{&seq}, `INSERT INTO actors (workspace, actor, last_seq) VALUES ($1, $2, 1)
		ON CONFLICT (workspace, actor) DO UPDATE SET last_seq = actors.last_seq + 1 RETURNING last_seq`, workspace, actor)
	tx.do(`INSERT INTO news (workspace, actor, seq, thread, message, at) VALUES ($1, $2, $3, $4, $5, $6)`, workspace, actor, seq, thread, message, now)
}

// mention gives the news to the actors that a message mentions.
func (r *recordTx) mention(row *Message, m *event.Message) {
	for _, actor := range m.Mentions {
		r.addNews(r.Workspace, actor, r.claim.Thread, row.Row, r.now)
	}
}

// FollowNews is FollowRun for the news of an actor.
func (j *Journal) FollowNews(workspace, actor string) (changed <-chan struct{}, stop func()) {
	return j.followers.Wait(newsWords + workspace + " " + actor)
}

// newsWords begin the words that tell other nodes of news.
const newsWords = "news "

// newsChanged wakes the readers of actors' news on all nodes.
func (j *Journal) newsChanged(workspace string, actors ...string) {
	for _, actor := range actors {
		j.changed(newsWords+workspace+" "+actor, true)
	}
}
