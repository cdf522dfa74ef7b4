package workstreams

import (
	"context"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Work is the unfinished run and the workstreams of a thread.
type Work struct {
	Run      string // the unfinished run; empty for none
	Children []Child
}

// Child is a workstream of a thread.
type Child struct {
	Workstream
	Runs []string // the runs of its own thread, the first one first
}

// maxChildren bounds the workstreams of a Work, and maxRuns their runs: the newest.
const maxChildren, maxRuns = 200, 20

// WorkIn returns the work in the thread with a row: its unfinished run, and the workstreams that were launched from it and work,
// or have ended at a time or later, the first launched one first.
func (s *Workstreams) WorkIn(ctx context.Context, thread int64, since time.Time) (Work, error) {
	return storage.Read(ctx, s.db, func(tx *storage.Txn) (w Work) {
		var key string
		tx.Row([]any{&w.Run, &key}, `SELECT run_id, key FROM threads WHERE id = $1`, thread)
		w.Children = storage.Rows(tx, func(c *Child) []any { return c.dest() }, `SELECT `+columns+` FROM workstreams w
			WHERE w.parent = $1 AND (w.state IN ('running', 'canceling') OR w.ended_at >= $2) ORDER BY w.launched_at, w.id LIMIT CAST($3 AS BIGINT)`,
			key, storage.Millis(since), int64(maxChildren))
		for i := range w.Children {
			c := &w.Children[i]
			c.Runs = storage.Rows(tx, func(run *string) []any { return []any{run} }, `SELECT run FROM (SELECT run, min(seq) AS begun FROM messages
				WHERE thread = (SELECT id FROM threads WHERE key = $1) AND run IS NOT NULL AND seq IS NOT NULL GROUP BY run ORDER BY begun DESC LIMIT CAST($2 AS BIGINT)) AS newest
				ORDER BY begun`, string(c.Key()), int64(maxRuns))
		}
		return w
	})
}

// Root returns the key of the thread of people from which a workstream's thread descends; the key itself for another thread.
func (s *Workstreams) Root(ctx context.Context, thread event.ThreadKey) (event.ThreadKey, error) {
	for event.IsWorkstream(thread) {
		if err := s.db.One(ctx, []any{(*string)(&thread)}, `SELECT parent FROM workstreams WHERE thread = $1`, string(thread)); err != nil {
			return "", err
		}
	}
	return thread, nil
}
