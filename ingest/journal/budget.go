package journal

import (
	"context"
	"fmt"
	"time"

	"parley/ingest/event"
)

// Budget bounds the runs that messages ask for within a window. The window begins with the
// first of them.
type Budget struct {
	Name string // of the counter in its workspace
	Most int64  // 0: the runs are only counted
	Per  time.Duration
}

// ExhaustedUntil returns the time at which each budget has a run left again. It is zero if each
// has one now, or if a payload with the dedupe key was accepted before. It leaves
// out a window that is longer than its budget's, because the limits have changed or the clock went
// back: the record of the next message shortens it.
func (j *Journal) ExhaustedUntil(ctx context.Context, workspace, dedupe string, budgets []Budget) (time.Time, error) {
	return read(ctx, j, func(tx *txn) (until time.Time) {
		for _, b := range budgets {
			var end time.Time
			if b.Most > 0 && tx.row([]any{&end}, `SELECT until_at FROM budgets WHERE workspace = $1 AND name = $2 AND until_at > $3 AND until_at <= $5 AND runs >= $4`,
				workspace, b.Name, millis(j.now()), b.Most, millis(j.now().Add(b.Per))) && end.After(until) {
				until = end
			}
		}
		if !until.IsZero() && tx.has(`SELECT 1 FROM envelopes WHERE workspace = $1 AND dedupe_key = $2`, workspace, dedupe) {
			return time.Time{}
		}
		return until
	})
}

// spend adds a number of runs to a budget's window, or to a new one if the last has ended. It
// returns the runs in the window, and whether the sender was told in it. The counter is locked
// from here on. A transaction locks a thread's row before counters, never after them.
func (r *recordTx) spend(b Budget, runs int64) (spent int64, told bool) {
	r.row([]any{&spent, &told}, `INSERT INTO budgets (workspace, name, until_at, runs, told) VALUES ($1, $2, $3, $4, 0)
		ON CONFLICT (workspace, name) DO UPDATE SET
			runs = CASE WHEN budgets.until_at <= $5 THEN excluded.runs ELSE budgets.runs + excluded.runs END,
			told = CASE WHEN budgets.until_at <= $5 THEN 0 ELSE budgets.told END,
			until_at = CASE WHEN budgets.until_at BETWEEN $5 + 1 AND excluded.until_at THEN budgets.until_at ELSE excluded.until_at END
		RETURNING runs, told`, r.Workspace, b.Name, r.now+b.Per.Milliseconds(), runs, r.now)
	return spent, told
}

// decide judges a message, or the new state of a known one.
func (r *recordTx) decide(m *event.Message, known *Message) Decision {
	d := r.Decide(m, r)
	r.budgets = d.Budgets
	asks := d.Trigger == TriggerRun && (known == nil || known.Seq == 0 || r.raises(known, d))
	if asks && r.exhausted() && !r.joins() {
		if m.RunID != "" { // its client asks again under the same id
			return Decision{Ignore: true, Reason: event.ReasonLimit}
		}
		return r.Over(m, r)
	}
	return d
}

// exhausted reports whether one of the budgets has no run left.
func (r *recordTx) exhausted() (exhausted bool) {
	for i, b := range r.budgets {
		spent, told := r.spend(b, 0)
		if i == 0 {
			r.told = told
		}
		exhausted = exhausted || b.Most > 0 && spent >= b.Most
	}
	return exhausted
}

// joins reports whether a message that asks for a run joins a turn that waits already: the newest
// other message that waits is for the same agent, and came without an id for its run.
func (r *recordTx) joins() bool {
	if r.Coalesce == 0 || !r.thread.waiting {
		return false
	}
	var asks int64
	if r.asks != nil {
		asks = r.asks.Row
	}
	var same bool
	r.row([]any{&same}, `SELECT CASE WHEN agent = $2 AND client_run_id IS NULL THEN 1 ELSE 0 END FROM messages WHERE `+waits+` AND row <> $3
		ORDER BY sent_at DESC, seq DESC LIMIT 1`, r.claim.Thread, r.Agent, asks)
	return same
}

// count adds the run that the message asks for to its budgets, or tells its sender that there
// is none left.
func (r *recordTx) count() {
	if r.asks != nil && !r.joins() {
		for _, b := range r.budgets {
			r.spend(b, 1)
		}
	}
	if r.notice == nil || r.told {
		return
	}
	r.tell()
	if r.out.Reason == event.ReasonLimit {
		r.do(`UPDATE budgets SET told = 1 WHERE workspace = $1 AND name = $2`, r.Workspace, r.budgets[0].Name)
	}
}

// tell stores the notice to the message's sender, and its deliveries.
func (r *recordTx) tell() {
	r.addNotice(r.claim.Thread, r.thread.nextSeq+r.added, r.Workspace, optional(r.out.Stopped), *r.notice, r.now)
	r.added++
	r.post(r.claim.Thread, r.Workspace, fmt.Sprintf("%s/%d", r.out.Message.UUID, r.Envelope), r.notice.Posts, r.now) // a later edit may have another
	r.out.Told = r.out.Told || len(r.notice.Posts) > 0
}
