// Package budgets counts what people spend within a time: the runs that messages ask for, the tokens of these runs, and the
// bytes of files.
package budgets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"parley/ingest/journal/storage"
)

// Budgets are the counters of a journal.
type Budgets struct{ db *storage.DB }

// New returns the counters in a store.
func New(db *storage.DB) *Budgets { return &Budgets{db} }

// Budget bounds the runs that messages ask for, or their tokens, within a window. The window begins with the
// first of them, unless it has an end of its own.
type Budget struct {
	Name string // of the counter in its workspace
	Most int64  // 0: the runs are only counted
	Per  time.Duration
	// Until is the end of a window that ends at a time of its own, such as a day. Its counter has tokens and not runs: each attempt that
	// ends spends its own. It is zero for a window of Per.
	Until time.Time
}

// Tokens bound the tokens of a day. 0 is no bound.
type Tokens struct {
	PerUser, PerWorkspace int64
	Zone                  *time.Location // in which the day begins
}

// Of returns the budgets that pay for the tokens of a sender at a time: the sender's own, without one of an empty sender, and that of the
// workspace. Each transaction takes the sender's first.
func (t Tokens) Of(sender string, at time.Time) (own, all []Budget) {
	switch {
	case t.PerUser == 0 && t.PerWorkspace == 0:
		return nil, nil
	case t.Zone == nil:
		t.Zone = time.UTC
	}
	y, m, d := at.In(t.Zone).Date()
	until := time.Date(y, m, d+1, 0, 0, 0, 0, t.Zone)
	if t.PerUser > 0 && sender != "" {
		own = []Budget{{Name: Name("tokens of " + sender), Most: t.PerUser, Until: until}}
	}
	if t.PerWorkspace > 0 {
		all = []Budget{{Name: "all tokens", Most: t.PerWorkspace, Until: until}}
	}
	return own, all
}

// maxName bounds the name of a counter, in bytes.
const maxName = 256

// Name returns a name for a counter. A long one is replaced by its hash.
func Name(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

// end returns the latest end of a window at a time, in milliseconds.
func (b Budget) end(now int64) int64 {
	if !b.Until.IsZero() {
		return storage.Millis(b.Until)
	}
	return now + b.Per.Milliseconds()
}

// ExhaustedUntil returns the time at which each budget has a run left again. It is zero if each
// has one now, or if a payload with the dedupe key was accepted before.
func (j *Budgets) ExhaustedUntil(ctx context.Context, workspace, dedupe string, budgets []Budget) (time.Time, error) {
	return storage.Read(ctx, j.db, func(tx *storage.Txn) (until time.Time) {
		for _, b := range budgets {
			if end := Exhausted(tx, workspace, b, storage.Millis(j.db.Now())); end.After(until) {
				until = end
			}
		}
		if !until.IsZero() && tx.Has(`SELECT 1 FROM envelopes WHERE workspace = $1 AND dedupe_key = $2`, workspace, dedupe) {
			return time.Time{}
		}
		return until
	})
}

// Exhausted returns the end of a budget's window if nothing is left in it; zero otherwise. It leaves out a window that is longer than its budget's,
// because the limits have changed or the clock went back: the record of the next message shortens it.
func Exhausted(tx *storage.Txn, workspace string, b Budget, now int64) (until time.Time) {
	if b.Most > 0 {
		tx.Row([]any{&until}, `SELECT until_at FROM budgets WHERE workspace = $1 AND name = $2 AND until_at > $3 AND until_at <= $5 AND runs >= $4`,
			workspace, b.Name, now, b.Most, b.end(now))
	}
	return until
}

// Spend adds a number of runs or tokens to a budget's window, or to a new one if the last has ended. It
// returns those in the window, and whether the sender was told in it. The counter is locked
// from here on, unless the budget has an end of its own that has passed. A transaction locks a thread's row before counters, never after them.
func Spend(tx *storage.Txn, workspace string, b Budget, runs, now int64) (spent int64, told bool) {
	if b.end(now) <= now {
		return 0, false
	}
	tx.Row([]any{&spent, &told}, `INSERT INTO budgets (workspace, name, until_at, runs, told) VALUES ($1, $2, $3, $4, 0)
		ON CONFLICT (workspace, name) DO UPDATE SET
			runs = CASE WHEN budgets.until_at <= $5 THEN excluded.runs ELSE budgets.runs + excluded.runs END,
			told = CASE WHEN budgets.until_at <= $5 THEN 0 ELSE budgets.told END,
			until_at = CASE WHEN budgets.until_at BETWEEN $5 + 1 AND excluded.until_at THEN budgets.until_at ELSE excluded.until_at END
		RETURNING runs, told`, workspace, b.Name, b.end(now), runs, now)
	return spent, told
}

// SetTold remembers that the sender was told in a budget's window.
func SetTold(tx *storage.Txn, workspace string, b Budget) {
	tx.Do(`UPDATE budgets SET told = 1 WHERE workspace = $1 AND name = $2`, workspace, b.Name)
}

// SpendBytes counts the bytes of a sender's file within a time. It returns false, and counts nothing, if
// the sender's bytes within that time would be more than most.
func (b *Budgets) SpendBytes(ctx context.Context, sender string, bytes, most int64, per time.Duration) (fits bool, err error) {
	if bytes > most {
		return false, nil
	}
	return storage.Write(ctx, b.db, storage.WriteOptions{}, func(tx *storage.Txn) bool {
		now := storage.Millis(b.db.Now())
		return tx.Exec(`INSERT INTO budgets (workspace, name, until_at, runs, told) VALUES ('', $1, $2, $3, 0)
			ON CONFLICT (workspace, name) DO UPDATE SET
				runs = CASE WHEN budgets.until_at BETWEEN $4 AND excluded.until_at THEN budgets.runs ELSE 0 END + excluded.runs,
				until_at = CASE WHEN budgets.until_at BETWEEN $4 AND excluded.until_at THEN budgets.until_at ELSE excluded.until_at END
			WHERE budgets.until_at NOT BETWEEN $4 AND excluded.until_at OR budgets.runs + excluded.runs <= $5`,
			"files of "+sender, now+per.Milliseconds(), bytes, now+1, most) > 0
	})
}

// Aged returns the step for counters whose window ended before a bound.
func Aged(before int64) storage.Step {
	return storage.ByAge("budgets", "workspace, name", "until_at", before)
}

// OfWorkspace returns the step for the counters of a removed workspace.
func OfWorkspace(workspace string) storage.Step { return storage.ByKey(workspace, "budgets", "name") }
