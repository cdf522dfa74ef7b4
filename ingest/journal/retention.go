package journal

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Pruned is what Prune has taken away.
type Pruned struct {
	Bodies    int64 // raw bodies that were emptied
	Envelopes int64 // rows
	RunEvents int64 // rows
}

const (
	// pruneBatch bounds the rows that one transaction looks at: custody waits
	// behind it.
	pruneBatch = 100
	// pruneRuns bounds the runs whose events go in one transaction.
	pruneRuns = 5
	// prunePause leaves the store to others between two transactions.
	prunePause = 10 * time.Millisecond
)

// Prune takes away what has been kept long enough: the raw bodies of settled
// envelopes, after a further time their rows, and what agents said while they
// worked. Dead letters keep their body as long as their row; what is pending is
// kept, and goes with its row if it is settled late.
//
// It works in small transactions and remembers how far it has come, so that it
// may be ended at any time and goes on with the next call. One call goes on at a
// time. Catch-up relies on the keys: they must be kept for longer than it reaches back.
func (j *Journal) Prune(ctx context.Context, retention Retention) (Pruned, error) {
	p := pruning{journal: j}
	now := j.now()
	err := p.walk(ctx, "prune/bodies", func(after int64) (int64, error) {
		return p.bodies(ctx, after, millis(now.Add(-retention.Envelopes)))
	})
	if err != nil {
		return p.done, fmt.Errorf("prune raw bodies: %w", err)
	}
	err = p.walk(ctx, "", func(after int64) (int64, error) {
		return p.rows(ctx, after, millis(now.Add(-retention.Keys)))
	})
	if err != nil {
		return p.done, fmt.Errorf("prune envelopes: %w", err)
	}
	err = p.walk(ctx, "prune/run_events", func(after int64) (int64, error) {
		return p.events(ctx, after, millis(now.Add(-retention.RunEvents)))
	})
	if err != nil {
		return p.done, fmt.Errorf("prune run events: %w", err)
	}
	return p.done, nil
}

// pruning is one call of Prune.
type pruning struct {
	journal *Journal
	done    Pruned
}

// walk calls step with the id that it has come to, until it comes no further. A
// walk with a name goes on where the last one stopped.
func (p *pruning) walk(ctx context.Context, name string, step func(after int64) (int64, error)) error {
	at, err := p.position(ctx, name)
	if err != nil {
		return err
	}
	for {
		next, err := step(at)
		if err != nil || next == at {
			return err
		}
		at = next
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(prunePause):
		}
	}
}

// position is how far the walk of a name has come.
func (p *pruning) position(ctx context.Context, name string) (at int64, err error) {
	if name == "" {
		return 0, nil
	}
	var stored string
	err = p.journal.engine.Read(single(ctx), func(tx Tx) error {
		_, err := tx.Row([]any{&stored}, `SELECT position FROM cursors WHERE workspace = '' AND channel = ?`, name)
		return err
	})
	if err != nil || stored == "" {
		return 0, err
	}
	return strconv.ParseInt(stored, 10, 64)
}

// remember stores how far the walk of a name has come.
func remember(tx Tx, name string, at int64) error {
	_, err := tx.Exec(`INSERT INTO cursors (workspace, channel, position) VALUES ('', ?, ?)
		ON CONFLICT (workspace, channel) DO UPDATE SET position = excluded.position`, name, strconv.FormatInt(at, 10))
	return err
}

// old returns the last id of the next few that a query names, up to the first
// whose time is not before the limit. Reading it does not hold up who writes.
func (p *pruning) old(ctx context.Context, query string, after, limit, count int64) (last int64, err error) {
	err = p.journal.engine.Read(single(ctx), func(tx Tx) error {
		last = after
		passed := false
		return tx.Rows(func(scan func(...any) error) error {
			var id, at int64
			err := scan(&id, &at)
			if passed = passed || at > limit; !passed {
				last = id
			}
			return err
		}, query, after, count)
	})
	return last, err
}

const oldEnvelopes = `SELECT id, accepted_at FROM envelopes WHERE id > ? ORDER BY id LIMIT ?`

// bodies empties the next few raw bodies.
func (p *pruning) bodies(ctx context.Context, after, limit int64) (int64, error) {
	last, err := p.old(ctx, oldEnvelopes, after, limit, pruneBatch)
	if err != nil || last == after {
		return last, err
	}
	n, err := write(ctx, p.journal, func(tx Tx) (int64, error) {
		n, err := tx.Exec(`UPDATE envelopes SET body = ? WHERE id > ? AND id <= ? AND state = 'done' AND body <> ?`,
			[]byte{}, after, last, []byte{})
		if err != nil {
			return 0, err
		}
		return n, remember(tx, "prune/bodies", last)
	})
	p.done.Bodies += n
	return last, err
}

// rows deletes the next few envelopes. It begins with the oldest one that is
// there, and so needs no memory. The newest of all stays: an engine may give the
// id of the last row to the next one, and messages name envelopes by their ids.
func (p *pruning) rows(ctx context.Context, after, limit int64) (int64, error) {
	last, err := p.old(ctx, oldEnvelopes, after, limit, pruneBatch)
	if err != nil || last == after {
		return last, err
	}
	n, err := write(ctx, p.journal, func(tx Tx) (int64, error) {
		return tx.Exec(`DELETE FROM envelopes WHERE id > ? AND id <= ? AND state <> 'pending' AND id < (SELECT max(id) FROM envelopes)`,
			after, last)
	})
	p.done.Envelopes += n
	return last, err
}

// events deletes what was said in the next few runs that have ended.
func (p *pruning) events(ctx context.Context, after, limit int64) (int64, error) {
	last, err := p.old(ctx, `SELECT row, CASE WHEN ended_at > 0 THEN ended_at ELSE begun_at END FROM runs WHERE row > ? ORDER BY row LIMIT ?`,
		after, limit, pruneRuns)
	if err != nil || last == after {
		return last, err
	}
	n, err := write(ctx, p.journal, func(tx Tx) (int64, error) {
		n, err := tx.Exec(`DELETE FROM run_events WHERE run > ? AND run <= ?`, after, last)
		if err != nil {
			return 0, err
		}
		return n, remember(tx, "prune/run_events", last)
	})
	p.done.RunEvents += n
	return last, err
}
