package journal

import (
	"context"
	"slices"
	"time"

	"parley/ingest/journal/audit"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/search"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/strangers"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/usage"
	"parley/ingest/journal/workstreams"
	"parley/ingest/wake"
)

const (
	// prunePause is the pause between two transactions, in which other calls can use the
	// store.
	prunePause = 10 * time.Millisecond
	// paceAge is how long a channel's pace is kept after its times have passed.
	paceAge = 24 * time.Hour
	// auditAge is how long it is kept what an operator did.
	auditAge = 365 * 24 * time.Hour
	// usageAge is how long the sums of a day are kept.
	usageAge = 400 * 24 * time.Hour
)

// Pruned counts the rows that Prune emptied or deleted, by step.
type Pruned map[string]int64

// steps lists each table whose rows have a bound of age. The rows of other tables live as
// long as their workspace. Blobs and files live as long as an attachment or a delivery
// names them. Exclusive leases are reused.
func (r Retention) steps(now time.Time) []storage.Step {
	before := func(age time.Duration) int64 { return storage.Millis(now.Add(-age)) }
	return slices.Concat(
		envelopes.Aged(now, r.Envelopes, r.Keys),
		[]storage.Step{outbox.AgedPayloads(before(r.Envelopes))},
		runs.Aged(before(max(r.Runs, usage.Settled)), before(r.RunEvents), before(r.Inputs)),
		threads.Aged(before(r.RunEvents), before(0)),
		[]storage.Step{workstreams.Aged(before(r.Runs))},
		schedules.Aged(before(r.Runs)),
		[]storage.Step{budgets.Aged(before(0)), outbox.AgedPaces(before(paceAge)), audit.Aged(before(auditAge)), usage.Aged(now.Add(-usageAge))},
	)
}

// workspaceSteps lists each table that has rows of workspaces. A message is removed with
// the rows of its attachments and its run; a run has at most 1,000 events.
func workspaceSteps(workspace string) []storage.Step {
	return slices.Concat(messages.OfWorkspace(workspace, append(files.OfMessages(), runs.OfMessages()...)), []storage.Step{budgets.OfWorkspace(workspace), workstreams.OfWorkspace(workspace), search.OfWorkspace(workspace), usage.OfWorkspace(workspace)},
		schedules.OfWorkspace(workspace), strangers.OfWorkspace(workspace), outbox.OfWorkspace(workspace), envelopes.OfWorkspace(workspace), threads.OfWorkspace(workspace))
}

// Prune removes the rows that are older than their bounds, and the rows of workspaces
// that were removed longer ago than retention.Keys. The caller may end it at any time and
// call it again later. Only one call may run at a time. Backfill relies on the keys: they
// must be kept for longer than it reads back.
func (j *Journal) Prune(ctx context.Context, retention Retention) (Pruned, error) {
	if err := j.Usage.Count(ctx); err != nil { // a run leaves after it was counted
		return nil, err
	}
	steps := retention.steps(j.db.Now())
	removed, err := storage.List(ctx, j.db, storage.Self[string], `SELECT id FROM workspaces WHERE removed_at > 0 AND removed_at <= $1`, storage.Millis(j.db.Now().Add(-retention.Keys)))
	for _, workspace := range removed {
		steps = append(steps, workspaceSteps(workspace)...)
	}
	pruned := Pruned{}
	for _, s := range steps {
		if err != nil {
			break
		}
		var n int64
		if n, err = j.prune(ctx, s); n > 0 {
			pruned[s.Name] += n
		}
	}
	j.Files.CopiesChanged()
	return pruned, err
}

// prune runs one step and returns the number of rows that it changed.
func (j *Journal) prune(ctx context.Context, s storage.Step) (changed int64, err error) {
	var at int64
	_, err = j.db.Row(ctx, []any{&at}, `SELECT position FROM retention_progress WHERE task = $1`, s.Name)
	for err == nil {
		before := at
		var n int64
		n, at, err = j.pruneNext(ctx, s, before)
		changed += n
		if err != nil || n == 0 && (at == before || s.Removed) {
			break
		}
		if !wake.After(ctx, prunePause) {
			err = context.Cause(ctx)
		}
	}
	return changed, err
}

// pruneNext runs one transaction of a step, after a position. It returns the number of
// changed rows and the new position.
func (j *Journal) pruneNext(ctx context.Context, s storage.Step, at int64) (n, next int64, err error) {
	args := []any{s.Bound}
	if s.Page != "" {
		if _, err := j.db.Row(ctx, []any{&next}, s.Page, at, s.Bound); err != nil || next == 0 {
			return 0, at, err
		}
		args = []any{at, next, s.Bound}
	}
	n, err = storage.Write(ctx, j.db, storage.WriteOptions{}, func(tx *storage.Txn) (n int64) {
		if s.Removed && !tx.Has(`SELECT 1 FROM workspaces WHERE id = $1 AND removed_at > 0 FOR UPDATE`, s.Bound) {
			return 0
		}
		for _, statement := range s.Statements {
			n += tx.Exec(statement, args...)
		}
		if s.Stays {
			tx.Do(`INSERT INTO retention_progress (task, position) VALUES ($1, $2) ON CONFLICT (task) DO UPDATE SET position = excluded.position`, s.Name, next)
		}
		return n
	})
	return n, next, err
}
