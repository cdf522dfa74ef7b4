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

// due is the condition under which a thread has work of a kind at time ?1, for
// the agent ?2 where the work is a turn, and the order in which it is due.
var due = map[Work]string{
	Intake:     `intake_at <= ?1 AND ?2 = ?2 ORDER BY intake_at`,
	Turns:      `turn_at <= ?1 AND agent = ?2 ORDER BY turn_at`,
	Deliveries: `deliver_at <= ?1 AND ?2 = ?2 ORDER BY deliver_at`,
}

// Due returns threads that have work of a kind now and that this node may
// claim or holds already, longest due first.
func (j *Journal) Due(ctx context.Context, work Work, agent string, limit int) ([]int64, error) {
	var threads []int64
	now := millis(j.now())
	err := j.engine.Read(ctx, func(tx Tx) error {
		threads = nil
		return tx.Rows(func(scan func(...any) error) error {
			var id, until int64
			var owner string
			err := scan(&id, &owner, &until)
			if owner == "" || owner == j.node || until <= now {
				threads = append(threads, id)
			}
			return err
		}, `SELECT id, owner, lease_until FROM threads WHERE `+due[work]+` LIMIT ?3`, now, agent, int64(limit))
	})
	return threads, err
}

// NextDue returns when the next thread that is not due yet will have work of a
// kind, in milliseconds since 1970; 0 for never.
func (j *Journal) NextDue(ctx context.Context, work Work, agent string) (int64, error) {
	column := map[Work]string{
		Intake:     `min(intake_at) FROM threads WHERE intake_at > ?1 AND ?2 = ?2`,
		Turns:      `min(turn_at) FROM threads WHERE turn_at > ?1 AND agent = ?2`,
		Deliveries: `min(deliver_at) FROM threads WHERE deliver_at > ?1 AND ?2 = ?2`,
	}[work]
	var at int64
	err := j.engine.Read(ctx, func(tx Tx) error {
		_, err := tx.Row([]any{&at}, `SELECT coalesce((SELECT `+column+`), 0)`, millis(j.now()), agent)
		return err
	})
	return at, err
}

// Claim takes a thread for this node; nil where somebody else has it. Claiming
// for intake counts on the envelope that is next.
func (j *Journal) Claim(ctx context.Context, thread int64, work Work) (*Lease, error) {
	return write(ctx, j, func(tx Tx) (*Lease, error) {
		now := millis(j.now())
		lease := &Lease{Thread: thread}
		found, err := tx.Row([]any{&lease.Fence}, `UPDATE threads SET owner = ?1, fence = fence + 1, lease_until = ?2
			WHERE id = ?3 AND (owner = '' OR owner = ?1 OR lease_until <= ?4) RETURNING fence`,
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
