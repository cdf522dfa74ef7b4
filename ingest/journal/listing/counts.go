package listing

import (
	"context"
	"time"

	"parley/ingest/journal/storage"
)

// CountLimit bounds each number of Counts: a larger number is given as this one.
const CountLimit = 10_000

// mostCounted is CountLimit in a query.
const mostCounted = `10000`

// FailedFor is how long a failed run counts among those that need an operator.
const FailedFor = 24 * time.Hour

// Counts are the numbers that an operator sees first.
type Counts struct {
	Workspaces map[string]WorkspaceCounts
	// Running are the unfinished runs, by agent.
	Running           map[string]int64
	DeadLetters       int64
	UnknownDeliveries int64 // posts that the platform may or may not have
	FailedDeliveries  int64 // posts that the platform refused
	Questions         int64 // of agents, that wait for an answer
	FailedRuns        int64 // that have failed within FailedFor, and whose messages were not asked again
}

// WorkspaceCounts are the numbers of one workspace.
type WorkspaceCounts struct {
	LastAt      time.Time // when its last message was recorded; zero if none was
	Waiting     int64     // envelopes without a result yet
	Behind      int64     // channels whose missed messages are still to be read
	DeadLetters int64
}

// Counts returns the numbers of the store, with those of each of the workspaces.
func (l *Listing) Counts(ctx context.Context, workspaces []string) (Counts, error) {
	now := storage.Millis(l.db.Now())
	return storage.Read(ctx, l.db, func(tx *storage.Txn) Counts {
		c := Counts{Workspaces: map[string]WorkspaceCounts{}}
		pending := by(tx, `workspace`, `envelopes WHERE state = 'pending' AND thread IS NOT NULL`)
		targetless := by(tx, `workspace`, `envelopes WHERE state = 'pending' AND thread IS NULL`)
		behind, dead := by(tx, `workspace`, `gaps`), by(tx, `workspace`, `envelopes WHERE state = 'dead'`)
		for _, id := range workspaces {
			w := WorkspaceCounts{Waiting: min(pending[id]+targetless[id], CountLimit), Behind: behind[id], DeadLetters: dead[id]}
			tx.Row([]any{&w.LastAt}, `SELECT last_at FROM threads WHERE workspace = $1 AND last_at > 0 ORDER BY last_at DESC LIMIT 1`, id)
			c.Workspaces[id] = w
		}
		for _, n := range dead {
			c.DeadLetters += n
		}
		c.Running = by(tx, `agent`, `threads WHERE run_id IS NOT NULL`)
		c.UnknownDeliveries = count(tx, `deliveries WHERE `+notSent+` AND state = 'unknown' AND kind = 'post'`)
		c.FailedDeliveries = count(tx, `deliveries WHERE `+notSent+` AND state = 'failed' AND kind = 'post'`)
		c.Questions = count(tx, `questions WHERE state = 'open' AND until_at > $1`, now)
		c.FailedRuns = count(tx, `runs r WHERE r.state = 'failed' AND r.ended_at >= $1 AND EXISTS (SELECT 1 FROM messages m WHERE m.run = r.id AND m.trigger = 'run' AND m.author <> 'system')`,
			now-FailedFor.Milliseconds())
		return c
	})
}

// limited is the end of a query that is counted.
const limited = ` LIMIT ` + mostCounted + `) AS few`

// by counts at most CountLimit rows by a column.
func by(tx *storage.Txn, column, rows string) map[string]int64 {
	type group struct {
		of string
		n  int64
	}
	counts := map[string]int64{}
	for _, g := range storage.Rows(tx, func(g *group) []any { return []any{&g.of, &g.n} },
		`SELECT `+column+`, count(*) FROM (SELECT `+column+` FROM `+rows+limited+` GROUP BY `+column) {
		counts[g.of] = g.n
	}
	return counts
}

// count counts at most CountLimit rows.
func count(tx *storage.Txn, rows string, args ...any) (n int64) {
	tx.Row([]any{&n}, `SELECT count(*) FROM (SELECT 1 FROM `+rows+limited, args...)
	return n
}
