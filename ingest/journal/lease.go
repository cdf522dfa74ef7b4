package journal

import "context"

// Lease is this node's claim of a thread. Every write of the thread's work
// carries its fence: a claim by somebody else raises it, and the write fails
// with ErrFenced.
type Lease struct {
	Thread int64
	Fence  int64
}

// Work is one of the three things that a thread's owner does side by side.
type Work string

// The kinds of work.
const (
	Intake     Work = "intake"
	Turns      Work = "turns"
	Deliveries Work = "deliveries"
)

// schedule is the column that says when a thread's work of a kind is due, and
// the condition that it is this agent's, with the arguments of that.
func (w Work) schedule(agent string) (column, whose string, args []any) {
	switch w {
	case Turns:
		return "turn_at", " AND agent = ?", []any{agent}
	case Deliveries:
		return "deliver_at", "", nil
	}
	return "intake_at", "", nil
}

// Due returns threads that have work of a kind now and that this node may
// claim or holds already, longest due first.
func (j *Journal) Due(ctx context.Context, work Work, agent string, limit int) ([]int64, error) {
	var threads []int64
	now := millis(j.now())
	column, whose, args := work.schedule(agent)
	query := `SELECT id FROM threads WHERE ` + column + ` <= ?` + whose + `
		AND (owner = '' OR owner = ? OR lease_until <= ?) ORDER BY ` + column + ` LIMIT CAST(? AS BIGINT)`
	args = append(append([]any{now}, args...), j.node, now, int64(limit))
	err := j.engine.Read(ctx, func(tx Tx) error {
		threads = nil
		return tx.Rows(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			threads = append(threads, id)
			return err
		}, query, args...)
	})
	return threads, err
}

// NextDue returns when the next thread that is not due yet will have work of a
// kind, in milliseconds since 1970; 0 for never.
func (j *Journal) NextDue(ctx context.Context, work Work, agent string) (int64, error) {
	column, whose, args := work.schedule(agent)
	query := `SELECT coalesce(min(` + column + `), 0) FROM threads WHERE ` + column + ` > ?` + whose
	args = append([]any{millis(j.now())}, args...)
	var at int64
	err := j.engine.Read(ctx, func(tx Tx) error {
		_, err := tx.Row([]any{&at}, query, args...)
		return err
	})
	return at, err
}

// lock reads columns of a thread's row, if the lease still holds, and keeps the
// row as it is for the rest of the transaction: a thread's intake, turn and
// deliveries change it side by side.
func lock(tx Tx, lease *Lease, dest []any, columns string) error {
	held, err := tx.Row(dest, `SELECT `+columns+` FROM threads WHERE id = ? AND fence = ? FOR UPDATE`, lease.Thread, lease.Fence)
	if err == nil && !held {
		return ErrFenced
	}
	return err
}

// Claim takes a thread for this node; nil where somebody else has it. Claiming
// for intake counts on the envelope that is next.
func (j *Journal) Claim(ctx context.Context, thread int64, work Work) (*Lease, error) {
	return write(ctx, j, func(tx Tx) (*Lease, error) {
		now := millis(j.now())
		lease := &Lease{Thread: thread}
		found, err := tx.Row([]any{&lease.Fence}, `UPDATE threads SET owner = ?1, fence = fence + 1, lease_until = ?2
			WHERE id = ?3 AND (threads.owner = '' OR threads.owner = ?1 OR threads.lease_until <= ?4) RETURNING fence`,
			j.node, now+j.lease.Milliseconds(), thread, now)
		if err != nil || !found {
			return nil, err
		}
		if work == Intake {
			_, err = tx.Exec(`UPDATE envelopes SET claims = claims + 1 WHERE id = (
				SELECT id FROM envelopes WHERE thread = ? AND state = 'pending' ORDER BY id LIMIT 1)`, thread)
		}
		return lease, err
	})
}

// Release gives threads back, as far as nobody has claimed them since.
func (j *Journal) Release(ctx context.Context, leases []Lease) error {
	return j.engine.Write(ctx, func(tx Tx) error {
		for _, lease := range leases {
			if _, err := tx.Exec(`UPDATE threads SET owner = '' WHERE id = ? AND fence = ?`, lease.Thread, lease.Fence); err != nil {
				return err
			}
		}
		return nil
	})
}
