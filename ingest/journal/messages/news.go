package messages

import (
	"context"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// News is one fact for an actor: it takes part in a thread, or a message of a thread mentions it.
type News struct {
	Seq    int64 // 1, 2, 3 … of the actor; some may be missing
	Thread threads.Thread
	// Message mentions the actor; nil: the actor began to take part.
	Message *Listed
	// Void says that there is nothing to tell any more: the message was deleted, or the actor may not
	// read the thread.
	Void bool

	message int64
	reads   bool
}

func (n *News) dest() []any { return append(n.Thread.Dest(), &n.Seq, &n.message, &n.reads) }

// NewsOf returns the news of an actor after a seq, in order. If open is set, the actor reads each
// thread that is not for its participants alone. A page ends at PageBytes.
func (m *Messages) NewsOf(ctx context.Context, workspace, actor string, open bool, after int64, limit int) ([]News, error) {
	return storage.Read(ctx, m.db, func(tx *storage.Txn) []News {
		page := storage.Rows(tx, (*News).dest, `SELECT `+threads.ThreadColumns+`, n.seq, n.message, CASE WHEN closed = 0 AND $5 = 1
				OR EXISTS (SELECT 1 FROM participants p WHERE p.thread = threads.id AND p.actor = $2) THEN 1 ELSE 0 END
			FROM (SELECT seq, thread, message FROM news WHERE workspace = $1 AND actor = $2 AND seq > $3 ORDER BY seq LIMIT CAST($4 AS BIGINT)) AS n
			JOIN threads ON threads.id = n.thread ORDER BY n.seq`, workspace, actor, after, int64(limit), storage.Number(open))
		bytes := 0
		for i := range page {
			n := &page[i]
			n.Void = !n.reads
			if n.Void || n.message == 0 {
				continue
			}
			found := List(tx, `m.row = $1 AND m.deleted_at = 0`, n.message)
			if n.Void = len(found) == 0; n.Void {
				continue
			}
			n.Message = &found[0]
			if bytes += n.Message.Size(); bytes >= storage.PageBytes {
				return page[:i+1]
			}
		}
		return page
	})
}
