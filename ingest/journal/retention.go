package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

// step removes old rows of one table, or the rows of a removed workspace, in small
// transactions, because durable accepts wait for each of them.
type step struct {
	name  string
	bound any // the time before which rows are too old, or the workspace
	// removed means that the bound is a removed workspace. The step ends if a node has
	// configured the workspace again.
	removed bool
	// page is the query for the last id of the next few rows, after id $1, to which the
	// bound $2 applies; null if there are none. If page is empty, the statement finds the
	// rows.
	page string
	// statements run in one transaction. Those of a page get the id before it, its last id
	// and the bound; others get the bound, and run until they change nothing.
	statements []string
	// stays means that the rows remain: the position is stored, and the next call begins
	// there.
	stays bool
}

// steps lists each table whose rows have a bound of age. The rows of other tables live as
// long as their workspace. Blobs and files live as long as an attachment or a delivery
// names them. Exclusive leases are reused.
func (r Retention) steps(now time.Time) []step {
	const page = `id > $1 AND id <= $2 AND accepted_at <= $3`
	// A clock that went back leaves envelopes of the future, which stop no others. Those of the
	// next day may have come during this call.
	aged := func(age time.Duration) string {
		return fmt.Sprintf(`SELECT max(id) FROM (SELECT id, accepted_at FROM envelopes WHERE id > $1 ORDER BY id LIMIT 100) AS page
			WHERE accepted_at <= $2 OR accepted_at > $2 + %d`, (age + 24*time.Hour).Milliseconds())
	}
	before := func(age time.Duration) int64 { return millis(now.Add(-age)) }
	byAge := func(table, key, at string, age time.Duration) step {
		return step{name: table, bound: before(age), statements: []string{
			fmt.Sprintf(`DELETE FROM %[1]s WHERE (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s <= $1 LIMIT 100)`, table, key, at),
		}}
	}
	return []step{
		{name: "bodies", bound: before(r.Envelopes), page: aged(r.Envelopes), stays: true, statements: []string{
			`UPDATE envelopes SET body = substr(body, 1, 0) WHERE ` + page + ` AND state = 'done' AND length(body) > 0`,
		}},
		{name: "envelopes", bound: before(r.Keys), page: aged(r.Keys), statements: []string{`DELETE FROM envelopes WHERE ` + page + ` AND state <> 'pending'`}},
		{name: "payloads", bound: before(r.Envelopes), statements: []string{`UPDATE deliveries SET payload = '', file = '', buttons = '' WHERE id IN (SELECT id FROM deliveries
			WHERE state IN ('sent', 'unknown', 'failed') AND (payload <> '' OR file <> '') AND due_at <= $1 ORDER BY due_at LIMIT 100)`}},
		byAge("runs", "id", "ended_at", r.Runs), byAge("questions", "run", "asked_at", r.Runs),
		byAge("run_events", "run, seq", "at", r.RunEvents), byAge("run_posts", "run, key", "at", r.RunEvents), byAge("news", "workspace, actor, seq", "at", r.RunEvents), byAge("tickets", "hash", "until_at", 0), byAge("budgets", "workspace, name", "until_at", 0),
		{name: "paces", bound: before(paceAge), statements: []string{`DELETE FROM paces WHERE (workspace, channel) IN (SELECT workspace, channel FROM paces
			WHERE next_at <= $1 AND blocked_until <= $1 AND left_at <= $1 LIMIT 100)`}},
	}
}

// workspaceSteps lists each table that has rows of workspaces. A message is removed with
// the rows of its attachments and its run; a run has at most 1,000 events.
func workspaceSteps(workspace string) []step {
	const page = `row > $1 AND row <= $2 AND workspace = $3`
	const messages, runs = `message IN (SELECT row FROM messages WHERE ` + page + `)`, ` IN (SELECT run FROM messages WHERE ` + page + `)`
	byID := func(table, id string, rows int, before ...string) step {
		return step{name: table, bound: workspace, removed: true,
			page: fmt.Sprintf(`SELECT max(%[2]s) FROM (SELECT %[2]s FROM %[1]s WHERE %[2]s > $1 AND workspace = $2 ORDER BY %[2]s LIMIT %[3]d) AS page`,
				table, id, rows),
			statements: append(before, fmt.Sprintf(`DELETE FROM %[1]s WHERE %[2]s > $1 AND %[2]s <= $2 AND workspace = $3`, table, id)),
		}
	}
	byKey := func(table, key string) step {
		return step{name: table, bound: workspace, removed: true, statements: []string{
			fmt.Sprintf(`DELETE FROM %[1]s WHERE workspace = $1 AND %[2]s IN (SELECT %[2]s FROM %[1]s WHERE workspace = $1 LIMIT 100)`, table, key),
		}}
	}
	return []step{
		byID("messages", "row", 5, checkAttached(messages), `DELETE FROM attachments WHERE `+messages,
			`DELETE FROM run_events WHERE run`+runs, `DELETE FROM run_posts WHERE run`+runs, `DELETE FROM questions WHERE run`+runs, `DELETE FROM runs WHERE id`+runs),
		byID("deliveries", "id", 100), byKey("envelopes", "dedupe_key"), byID("threads", "id", 100),
		byKey("participants", "actor"), byKey("actors", "actor"), byKey("news", "actor"),
		byKey("carried", "message_id"), byKey("channels", "id"), byKey("paces", "channel"), byKey("budgets", "name"), byKey("watermarks", "workspace"), byKey("gaps", "channel"),
		byKey("adapter_state", "name"),
		{name: "workspaces", bound: workspace, removed: true, statements: []string{`DELETE FROM workspaces WHERE id = $1`}},
	}
}

// Prune removes the rows that are older than their bounds, and the rows of workspaces
// that were removed longer ago than retention.Keys. The caller may end it at any time and
// call it again later. Only one call may run at a time. Backfill relies on the keys: they
// must be kept for longer than it reads back.
func (j *Journal) Prune(ctx context.Context, retention Retention) (Pruned, error) {
	steps := retention.steps(j.now())
	removed, err := list(ctx, j, self[string], `SELECT id FROM workspaces WHERE removed_at > 0 AND removed_at <= $1`, millis(j.now().Add(-retention.Keys)))
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
			pruned[s.name] += n
		}
	}
	j.copies.Set()
	return pruned, err
}

// prune runs one step and returns the number of rows that it changed.
func (j *Journal) prune(ctx context.Context, s step) (changed int64, err error) {
	var at int64
	_, err = j.row(ctx, []any{&at}, `SELECT position FROM retention_progress WHERE task = $1`, s.name)
	for err == nil {
		before := at
		var n int64
		n, at, err = j.pruneNext(ctx, s, before)
		changed += n
		if err != nil || n == 0 && (at == before || s.removed) {
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
func (j *Journal) pruneNext(ctx context.Context, s step, at int64) (n, next int64, err error) {
	args := []any{s.bound}
	if s.page != "" {
		if _, err := j.row(ctx, []any{&next}, s.page, at, s.bound); err != nil || next == 0 {
			return 0, at, err
		}
		args = []any{at, next, s.bound}
	}
	n, err = write(ctx, j, WriteOptions{}, func(tx *txn) (n int64) {
		if s.removed && !tx.has(`SELECT 1 FROM workspaces WHERE id = $1 AND removed_at > 0 FOR UPDATE`, s.bound) {
			return 0
		}
		for _, statement := range s.statements {
			n += tx.exec(statement, args...)
		}
		if s.stays {
			tx.do(`INSERT INTO retention_progress (task, position) VALUES ($1, $2) ON CONFLICT (task) DO UPDATE SET position = excluded.position`, s.name, next)
		}
		return n
	})
	return n, next, err
}

// Configured records which workspaces this node has configured. Any other workspace
// counts as removed, until a node that has it calls Configured. It writes again if the outcome of
// a write is not known, because the daemon's start fails with it.
func (j *Journal) Configured(ctx context.Context, workspaces []string) error {
	for {
		err := j.change(ctx, "", func(tx *txn) {
			for _, id := range slices.Sorted(slices.Values(workspaces)) {
				tx.do(`INSERT INTO workspaces (id, self) VALUES ($1, '')
					ON CONFLICT (id) DO UPDATE SET removed_at = 0 WHERE workspaces.removed_at > 0`, id)
			}
			tx.do(`UPDATE workspaces SET removed_at = $1 WHERE removed_at = 0 AND $2 NOT LIKE '%,' || id || ',%'`,
				millis(j.now()), ","+strings.Join(workspaces, ",")+",")
		})
		if !errors.Is(err, ErrUnclear) || ctx.Err() != nil {
			return err
		}
	}
}
