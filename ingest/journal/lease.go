package journal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/ingest/event"
)

// Lease is this node's claim of a thread. Every write of the thread's work
// carries its fence: a claim by somebody else raises it, and the write fails
// with ErrFenced.
type Lease struct {
	Thread int64
	Fence  int64
	// Key is the thread's, as far as it is known.
	Key event.ThreadKey
	// Until is when somebody else may claim the thread, if the lease is not
	// renewed; zero where a lease ends with its process alone.
	Until time.Time
}

// until is when a lease ends that is taken at a time, as it is kept in memory.
func (j *Journal) until(now int64) time.Time {
	if j.lease == 0 {
		return time.Time{}
	}
	return instant(now + j.lease.Milliseconds())
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

// Serve says which workspaces this node knows: it looks for the work of no others,
// which another node may have been told of first. Until it is called, of all.
func (j *Journal) Serve(workspaces []string) {
	served := "," + strings.Join(workspaces, ",") + ","
	j.served.Store(&served)
}

// ours is the condition that a thread's workspace is served, with its arguments.
// Ids of workspaces hold nothing that LIKE or the list could take for its own.
func (j *Journal) ours() (string, []any) {
	served := j.served.Load()
	if served == nil {
		return "", nil
	}
	return ` AND ? LIKE '%,' || workspace || ',%'`, []any{*served}
}

// Due returns threads that have work of a kind now and that this node may
// claim or holds already, longest due first.
func (j *Journal) Due(ctx context.Context, work Work, agent string, limit int) ([]int64, error) {
	var threads []int64
	now := millis(j.now())
	column, whose, args := work.schedule(agent)
	ours, served := j.ours()
	query := `SELECT id FROM threads WHERE ` + column + ` <= ?` + whose + ours + `
		AND ` + available + ` ORDER BY ` + column + ` LIMIT CAST(? AS BIGINT)`
	args = append(append(append([]any{now}, args...), served...), j.node, now, int64(limit))
	err := j.engine.Read(single(ctx), func(tx Tx) error {
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

// NextDue returns when the next thread that is not due yet, and that nobody else
// has, will have work of a kind, in milliseconds since 1970; 0 for never.
func (j *Journal) NextDue(ctx context.Context, work Work, agent string) (int64, error) {
	column, whose, args := work.schedule(agent)
	ours, served := j.ours()
	now := millis(j.now())
	query := `SELECT ` + column + ` FROM threads WHERE ` + column + ` > ?` + whose + ours + ` AND ` + available + ` ORDER BY ` + column + ` LIMIT 1`
	args = append(append(append([]any{now}, args...), served...), j.node, now)
	var at int64
	err := j.engine.Read(single(ctx), func(tx Tx) error {
		_, err := tx.Row([]any{&at}, query, args...)
		return err
	})
	return at, err
}

// lock reads columns of a thread's row, and keeps the row as it is for the rest of
// the transaction: a thread's intake, turn and deliveries change it side by side.
// The transaction fails where the lease does not hold any more. What was read is
// there once the next result is.
func lock(tx Tx, lease *Lease, dest []any, columns string) error {
	return tx.Later(ErrFenced, dest, `SELECT `+columns+` FROM threads WHERE id = ? AND fence = ? FOR UPDATE`, lease.Thread, lease.Fence)
}

// lockNow is lock where what was read is needed at once.
func lockNow(tx Tx, lease *Lease, dest []any, columns string) error {
	held, err := tx.Row(dest, `SELECT `+columns+` FROM threads WHERE id = ? AND fence = ? FOR UPDATE`, lease.Thread, lease.Fence)
	if err == nil && !held {
		return ErrFenced
	}
	return err
}

// available is the condition that a node may claim a thread, with the node and the time.
const available = `(owner = '' OR owner = ? OR lease_until <= ?)`

// Claim takes a thread for this node; nil where somebody else has it. Claiming
// for intake counts on the envelope that is next.
func (j *Journal) Claim(ctx context.Context, thread int64, work Work) (*Lease, error) {
	lease, _, err := j.claim(ctx, thread, work)
	return lease, err
}

// claim is Claim, and tells who has the thread where this node can't have it.
func (j *Journal) claim(ctx context.Context, thread int64, work Work) (lease *Lease, owner string, err error) {
	lease, err = write(ctx, j, func(tx Tx) (*Lease, error) {
		now := millis(j.now())
		lease := &Lease{Thread: thread, Until: j.until(now)}
		found, err := tx.Row([]any{&lease.Fence, (*string)(&lease.Key)}, `UPDATE threads SET owner = ?, fence = fence + 1, lease_until = ?
			WHERE id = ? AND `+available+` RETURNING fence, key`, j.node, now+j.lease.Milliseconds(), thread, j.node, now)
		if err != nil {
			return nil, err
		}
		if !found {
			_, err := tx.Row([]any{&owner}, `SELECT owner FROM threads WHERE id = ?`, thread)
			return nil, err
		}
		return lease, j.countClaim(tx, thread, work, now+j.lease.Milliseconds())
	})
	if err != nil || lease != nil {
		owner = ""
	}
	return lease, owner, err
}

// countClaim counts a claim for intake, until a time, on the envelope that is next. It
// looks at no envelope of a thread that was not claimed: somebody may work on it.
func (j *Journal) countClaim(tx Tx, thread int64, work Work, until int64) error {
	if work != Intake {
		return nil
	}
	return tx.Later(nil, nil, `UPDATE envelopes SET claims = claims + 1 WHERE id = (
		SELECT e.id FROM envelopes e JOIN threads t ON t.id = e.thread
		WHERE e.thread = ? AND e.state = 'pending' AND t.owner = ? AND t.lease_until = ? ORDER BY e.id LIMIT 1)`, thread, j.node, until)
}

// ClaimAll takes those of some threads that are free, for work of a kind. It
// waits for nobody: what another node is about to take is left to it.
func (j *Journal) ClaimAll(ctx context.Context, threads []int64, work Work) ([]Lease, error) {
	if len(threads) == 0 {
		return nil, nil
	}
	now := millis(j.now())
	leases, err := write(ctx, j, func(tx Tx) ([]Lease, error) {
		leases := make([]Lease, len(threads))
		for i, thread := range threads {
			leases[i] = Lease{Thread: thread, Until: j.until(now)}
			if err := tx.Later(nil, []any{&leases[i].Fence, (*string)(&leases[i].Key)}, `UPDATE threads SET owner = ?, fence = fence + 1, lease_until = ?
				WHERE id = (SELECT id FROM threads WHERE id = ? AND `+available+` FOR UPDATE SKIP LOCKED) RETURNING fence, key`,
				j.node, now+j.lease.Milliseconds(), thread, j.node, now); err != nil {
				return nil, err
			}
			if err := j.countClaim(tx, thread, work, now+j.lease.Milliseconds()); err != nil {
				return nil, err
			}
		}
		return leases, nil
	})
	return slices.DeleteFunc(leases, func(l Lease) bool { return l.Fence == 0 }), err
}

// leasesAtOnce bounds the leases that are renewed, or given back, at one time.
const leasesAtOnce = 64

// each calls do for leases, side by side: each is a transaction about its own
// thread, so that none waits for another thread's work.
func each(leases []Lease, do func(i int) error) error {
	errs := make([]error, len(leases))
	var going sync.WaitGroup
	slots := make(chan struct{}, leasesAtOnce)
	for i := range leases {
		slots <- struct{}{}
		going.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	going.Wait()
	return errors.Join(errs...)
}

// Renew makes leases last anew, each as far as nobody has claimed its thread
// since. It returns those that were renewed, with their new Until, and those that
// are lost; what it failed to ask about is in neither.
func (j *Journal) Renew(ctx context.Context, leases []Lease) (renewed, lost []Lease, err error) {
	held := make([]int64, len(leases))
	asked := make([]bool, len(leases))
	now := millis(j.now())
	err = each(leases, func(i int) error {
		err := j.engine.Write(about(ctx, leases[i].Key), func(tx Tx) error {
			held[i] = 0
			return tx.Later(nil, []any{&held[i]}, `UPDATE threads SET lease_until = ? WHERE id = ? AND fence = ? RETURNING fence`,
				now+j.lease.Milliseconds(), leases[i].Thread, leases[i].Fence)
		})
		asked[i] = err == nil
		return err
	})
	for i, lease := range leases {
		switch {
		case !asked[i]:
		case held[i] == 0:
			lost = append(lost, lease)
		default:
			lease.Until = j.until(now)
			renewed = append(renewed, lease)
		}
	}
	return renewed, lost, err
}

// Release gives threads back, as far as nobody has claimed them since. What may have
// been given back is given back again.
func (j *Journal) Release(ctx context.Context, leases []Lease) error {
	return each(leases, func(i int) error {
		for {
			if err := j.release(ctx, leases[i]); !errors.Is(err, ErrUnclear) || ctx.Err() != nil {
				return err
			}
		}
	})
}

func (j *Journal) release(ctx context.Context, lease Lease) error {
	return j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		return tx.Later(nil, nil, `UPDATE threads SET owner = '' WHERE id = ? AND fence = ?`, lease.Thread, lease.Fence)
	})
}
