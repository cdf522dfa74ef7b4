package journal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/ingest/journal/budgets"
	"parley/ingest/journal/files"
	"parley/ingest/journal/places"
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
)

const (
	// prunePause is the pause between two transactions, in which other calls can use the
	// store.
	prunePause = 10 * time.Millisecond
	// paceAge is how long a channel's pace is kept after its times have passed.
	paceAge = 24 * time.Hour
)

// Pruned counts the rows that Prune emptied or deleted, by step.
type Pruned map[string]int64

// steps lists each table whose rows have a bound of age. The rows of other tables live as
// long as their workspace. Blobs and files live as long as an attachment or a delivery
// names them. Exclusive leases are reused.
func (r Retention) steps(now time.Time) []storage.Step {
	before := func(age time.Duration) int64 { return storage.Millis(now.Add(-age)) }
	return slices.Concat(
		agedEnvelopes(now, r.Envelopes, r.Keys),
		[]storage.Step{agedPayloads(before(r.Envelopes))},
		agedRuns(before(r.Runs), before(r.RunEvents)),
		places.Aged(before(r.RunEvents), before(0)),
		[]storage.Step{budgets.Aged(before(0)), agedPaces(before(paceAge))},
	)
}

func agedEnvelopes(now time.Time, bodies, keys time.Duration) []storage.Step {
	const page = `id > $1 AND id <= $2 AND accepted_at <= $3`
	// A clock that went back leaves envelopes of the future, which stop no others. Those of the
	// next day may have come during this call.
	aged := func(age time.Duration) string {
		return fmt.Sprintf(`SELECT max(id) FROM (SELECT id, accepted_at FROM envelopes WHERE id > $1 ORDER BY id LIMIT 100) AS page
			WHERE accepted_at <= $2 OR accepted_at > $2 + %d`, (age + 24*time.Hour).Milliseconds())
	}
	before := func(age time.Duration) int64 { return storage.Millis(now.Add(-age)) }
	return []storage.Step{
		{Name: "bodies", Bound: before(bodies), Page: aged(bodies), Stays: true, Statements: []string{
			`UPDATE envelopes SET body = substr(body, 1, 0) WHERE ` + page + ` AND state = 'done' AND length(body) > 0`,
		}},
		{Name: "envelopes", Bound: before(keys), Page: aged(keys), Statements: []string{`DELETE FROM envelopes WHERE ` + page + ` AND state <> 'pending'`}},
	}
}

func agedPayloads(before int64) storage.Step {
	return storage.Step{Name: "payloads", Bound: before, Statements: []string{`UPDATE deliveries SET payload = '', file = '', buttons = '' WHERE id IN (SELECT id FROM deliveries
		WHERE state IN ('sent', 'unknown', 'failed') AND (payload <> '' OR file <> '') AND due_at <= $1 ORDER BY due_at LIMIT 100)`}}
}

func agedRuns(runs, events int64) []storage.Step {
	return []storage.Step{
		storage.ByAge("runs", "id", "ended_at", runs), storage.ByAge("questions", "run", "asked_at", runs),
		storage.ByAge("run_events", "run, seq", "at", events), storage.ByAge("run_posts", "run, key", "at", events),
	}
}

func agedPaces(before int64) storage.Step {
	return storage.Step{Name: "paces", Bound: before, Statements: []string{`DELETE FROM paces WHERE (workspace, channel) IN (SELECT workspace, channel FROM paces
		WHERE next_at <= $1 AND blocked_until <= $1 AND left_at <= $1 LIMIT 100)`}}
}

// deletesRuns returns the statements that delete what is stored of the runs that meet a condition on
// their id.
func deletesRuns(condition string) []string {
	return []string{
		`DELETE FROM run_events WHERE run` + condition, `DELETE FROM run_posts WHERE run` + condition,
		`DELETE FROM questions WHERE run` + condition, `DELETE FROM runs WHERE id` + condition,
	}
}

// workspaceSteps lists each table that has rows of workspaces. A message is removed with
// the rows of its attachments and its run; a run has at most 1,000 events.
func workspaceSteps(workspace string) []storage.Step {
	const page = `row > $1 AND row <= $2 AND workspace = $3`
	const messages, runs = `message IN (SELECT row FROM messages WHERE ` + page + `)`, ` IN (SELECT run FROM messages WHERE ` + page + `)`
	return slices.Concat([]storage.Step{
		storage.ByID(workspace, "messages", "row", 5, append(files.Deletes(messages), deletesRuns(runs)...)...),
		storage.ByID(workspace, "deliveries", "id", 100),
		storage.ByKey(workspace, "envelopes", "dedupe_key"),
		storage.ByKey(workspace, "carried", "message_id"),
		storage.ByKey(workspace, "paces", "channel"),
		budgets.OfWorkspace(workspace),
	}, places.OfWorkspace(workspace))
}

// Prune removes the rows that are older than their bounds, and the rows of workspaces
// that were removed longer ago than retention.Keys. The caller may end it at any time and
// call it again later. Only one call may run at a time. Backfill relies on the keys: they
// must be kept for longer than it reads back.
func (j *Journal) Prune(ctx context.Context, retention Retention) (Pruned, error) {
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
	j.CopiesChanged()
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
