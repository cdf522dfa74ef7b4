package work

import (
	"context"
	"strings"
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// dueAt is a thread with the time at which its work is due, in milliseconds since 1970.
type dueAt struct {
	thread, at int64
	workspace  string
}

// dueColumn is the column that shows when a thread's work of a kind is due, and dueFrom
// where to find it. Deliveries that are pending, and those that are sending, are in different indexes.
var (
	dueColumn = map[Kind]string{Intake: "intake_at", Turns: "turn_at", Deliveries: "due_at"}
	dueFrom   = map[Kind][]string{Intake: {"threads WHERE intake_at IS NOT NULL"}, Turns: {"threads WHERE turn_at IS NOT NULL"},
		Deliveries: {firstOpen + ` WHERE d.state = 'pending'`, firstOpen + ` WHERE d.state IN ('pending', 'sending') AND d.state = 'sending'`}}
)

// firstOpen finds the first open delivery of each thread. Those that remove a sign
// of work or change a state post come after all others, each when it is due. The pieces of a
// refused post, and the notice of it, come where the post was; see outbox.OpenDelivery.
const firstOpen = `deliveries d JOIN threads ON threads.id = d.thread
	AND NOT EXISTS (SELECT 1 FROM deliveries e WHERE e.thread = d.thread
		AND e.state IN ('pending', 'sending') AND (CASE WHEN e.kind IN ('unsign', 'restate') THEN e.due_at ELSE 0 END, CASE WHEN e.kind IN ('post', 'tell') AND e.replaces <> 0 THEN e.replaces ELSE e.id END, e.id)
			< (CASE WHEN d.kind IN ('unsign', 'restate') THEN d.due_at ELSE 0 END, CASE WHEN d.kind IN ('post', 'tell') AND d.replaces <> 0 THEN d.replaces ELSE d.id END, d.id))`

// due returns threads that have work of a queue and that this node may claim, the
// longest due first. Threads whose work is due after now follow.
func (s *Scheduler) due(ctx context.Context, q *queue, now time.Time, limit int) (list []dueAt, err error) {
	column := dueColumn[q.Kind]
	s.mu.Lock()
	var full []string
	for of := range s.shares {
		if of.kind == q.Kind && s.isFull(q, of.workspace, 0) {
			full = append(full, of.workspace)
		}
	}
	args := []any{s.Node, threads.LeasesEnded(now, s.Lease), int64(limit), s.served, storage.Between(full)}
	s.mu.Unlock()
	turns := ""
	if q.Kind == Turns { // the thread's intake wakes the turn when it is done
		turns = ` AND agent = $6 AND (pending = 0 OR intake_at IS NULL OR intake_at > $7)`
		args = append(args, q.Agent, now.UnixMilli())
	}
	rest := ` AND ` + available + ` AND ($4 = '' OR $4 LIKE '%,' || threads.workspace || ',%') AND $5 NOT LIKE '%,' || threads.workspace || ',%'` + turns
	order := ` ORDER BY ` + column + ` LIMIT CAST($3 AS BIGINT)`
	var parts []string
	for _, from := range dueFrom[q.Kind] {
		parts = append(parts, `SELECT threads.id, `+column+`, threads.workspace FROM `+from+rest+order)
	}
	query := parts[0]
	if len(parts) > 1 {
		query = `SELECT * FROM (` + strings.Join(parts, `) AS part UNION ALL SELECT * FROM (`) + `) AS part` + order
	}
	err = s.db.Engine.ReadOne(ctx, func(tx storage.Tx) error {
		list = nil
		return tx.Rows(func(scan func(...any) error) error {
			var d dueAt
			err := scan(&d.thread, &d.at, &d.workspace)
			list = append(list, d)
			return err
		}, query, args...)
	})
	return list, err
}

// Serves names the workspaces that this node is configured for. The scheduler looks
// for no work of others, and releases their threads. Before the first call it serves all.
func (s *Scheduler) Serves(workspaces []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = storage.Between(workspaces)
}

// serves reports whether this node is configured for a workspace.
func (s *Scheduler) serves(workspace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served == "" || strings.Contains(s.served, storage.Between([]string{workspace}))
}
