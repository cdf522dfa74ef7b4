package journal

import (
	"context"
	"time"

	"parley/ingest/event"
)

// Pending is an envelope that waits to be worked on.
type Pending struct {
	ID       int64
	Envelope event.Envelope
	Attempts int64 // failures that were reported
	Claims   int64 // takings; each that ended with its process is in here
}

// NextEnvelopes returns the first envelopes of a thread that are due, in the
// order in which they were accepted. It returns none behind one that is not due.
func (j *Journal) NextEnvelopes(ctx context.Context, thread int64, limit int) ([]Pending, error) {
	var out []Pending
	now, late := millis(j.now()), false
	err := j.engine.Read(single(ctx), func(tx Tx) error {
		out, late = nil, false
		return tx.Rows(func(scan func(...any) error) error {
			var p Pending
			var platform string
			var receivedAt, notBefore int64
			if err := scan(&p.ID, &p.Envelope.Workspace, &platform, &p.Envelope.Transport, &receivedAt, &p.Envelope.Body,
				&p.Attempts, &p.Claims, &notBefore); err != nil {
				return err
			}
			p.Envelope.Platform, p.Envelope.ReceivedAt = event.Platform(platform), instant(receivedAt)
			if late = late || notBefore > now; !late {
				out = append(out, p)
			}
			return nil
		}, `SELECT id, workspace, platform, transport, received_at, body, attempts, claims, not_before
			FROM envelopes WHERE thread = ? AND state = 'pending' ORDER BY id LIMIT CAST(? AS BIGINT)`, thread, int64(limit))
	})
	return out, err
}

// workedOn is the condition that an envelope is still a thread's to work on.
const workedOn = `id = ? AND thread = ? AND state = 'pending'`

// Postpone makes an envelope, and so its thread's intake, due again at a later
// time. A failure counts as an attempt; waiting for something known does not.
// The claim that comes to its end with this is not counted any more.
func (j *Journal) Postpone(ctx context.Context, lease *Lease, envelope int64, until time.Time, failure error) error {
	attempts, words := int64(0), ""
	if failure != nil {
		attempts, words = 1, failure.Error()
	}
	return j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		if err := tx.Later(ErrFenced, nil, `UPDATE threads SET intake_at = ? WHERE id = ? AND fence = ?`,
			millis(until), lease.Thread, lease.Fence); err != nil {
			return err
		}
		return tx.Later(ErrSettled, nil, `UPDATE envelopes SET not_before = ?, attempts = attempts + ?, error = ?,
			claims = CASE WHEN claims > 0 THEN claims - 1 ELSE 0 END WHERE `+workedOn,
			millis(until), attempts, words, envelope, lease.Thread)
	})
}

// Bury settles an envelope as a dead letter and lets its thread go on.
func (j *Journal) Bury(ctx context.Context, lease *Lease, envelope int64, cause error) error {
	now := millis(j.now())
	return j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		if err := tx.Later(ErrFenced, nil, `UPDATE threads SET pending = pending - 1, intake_at = CASE WHEN pending > 1 THEN CAST(? AS BIGINT) END
			WHERE id = ? AND fence = ?`, now, lease.Thread, lease.Fence); err != nil {
			return err
		}
		return tx.Later(ErrSettled, nil, `UPDATE envelopes SET state = 'dead', disposition = 'dead', error = ? WHERE `+workedOn,
			cause.Error(), envelope, lease.Thread)
	})
}

// Settled is an envelope's end as it is stored.
type Settled struct {
	event.Fate
	Envelope  int64
	Workspace string
	Kind      event.Kind
	Thread    event.ThreadKey
	Message   *Message
}

// Envelope returns what became of an envelope; nil while it is pending.
func (j *Journal) Envelope(ctx context.Context, id int64) (*Settled, error) {
	var out *Settled
	err := j.engine.Read(ctx, func(tx Tx) error {
		out = nil
		s := Settled{Envelope: id}
		var kind, disposition, state, key string
		var message int64
		found, err := tx.Row([]any{&s.Workspace, &kind, &disposition, &s.Reason, &s.Error, &state, &key, &message}, `
			SELECT e.workspace, e.kind, e.disposition, e.reason, e.error, e.state, coalesce(t.key, ''), coalesce(e.message, 0)
			FROM envelopes e LEFT JOIN threads t ON t.id = e.thread WHERE e.id = ?`, id)
		if err != nil || !found || state == "pending" {
			return err
		}
		s.Kind, s.Disposition, s.Thread = event.Kind(kind), event.Disposition(disposition), event.ThreadKey(key)
		if message != 0 {
			if s.Message, err = oneMessage(tx, `id = ?`, message); err == nil && s.Message != nil {
				err = s.Message.load(tx)
			}
		}
		out = &s
		return err
	})
	return out, err
}

// WaitLimit is how long an envelope waits for its subject.
const WaitLimit = time.Minute

// ReviewWaiting looks again for the subjects of the envelopes that wait for
// one: what is there now is let in, what has waited since before the deadline
// is ignored. It returns the threads that have work and the envelopes it ended,
// also beside an error: each envelope has a transaction of its own. Several nodes
// may do it at once; what one has let in or ended is not in the others' reviews.
func (j *Journal) ReviewWaiting(ctx context.Context, deadline time.Time) (Review, error) {
	var review Review
	list, err := j.waitingEnvelopes(ctx, millis(deadline))
	for _, w := range list {
		var let reviewed
		if let, err = j.review(ctx, w); err != nil {
			break
		}
		if let.thread != 0 {
			review.Threads = append(review.Threads, let.thread)
		}
		if let.ended != nil {
			review.Ended = append(review.Ended, *let.ended)
		}
	}
	return review, err
}

// reviewBatch bounds the envelopes that one review changes.
const reviewBatch = 500

// Review is what ReviewWaiting found.
type Review struct {
	Threads []int64   // have work now
	Ended   []Settled // waited in vain
}

// waiting is an envelope that waits, and that something can be done about.
type waiting struct {
	id                       int64
	workspace, subject, kind string
}

// waitingEnvelopes returns the first of those whose subject is there now, or that
// were accepted by the deadline. The plus in its order keeps to the index of what
// waits: all other envelopes have ids as well.
func (j *Journal) waitingEnvelopes(ctx context.Context, deadline int64) (list []waiting, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		list = nil
		return tx.Rows(func(scan func(...any) error) error {
			var w waiting
			err := scan(&w.id, &w.workspace, &w.subject, &w.kind)
			list = append(list, w)
			return err
		}, `SELECT id, workspace, subject, kind FROM envelopes WHERE state = 'pending' AND thread IS NULL AND (accepted_at <= ?
			OR EXISTS (SELECT 1 FROM messages WHERE messages.workspace = envelopes.workspace AND messages.external_id = envelopes.subject)
			OR EXISTS (SELECT 1 FROM deliveries WHERE deliveries.workspace = envelopes.workspace AND deliveries.platform_id = envelopes.subject))
			ORDER BY +id LIMIT CAST(? AS BIGINT)`, deadline, int64(reviewBatch))
	})
	return list, err
}

// reviewed is what was done about one envelope.
type reviewed struct {
	thread int64    // that was given the envelope; 0 for none
	ended  *Settled // nil where it did not end
}

// review lets an envelope in, or ends it, unless somebody else has done so.
func (j *Journal) review(ctx context.Context, w waiting) (reviewed, error) {
	return write(ctx, j, func(tx Tx) (reviewed, error) {
		thread, err := subjectThread(tx, w.workspace, w.subject)
		if err != nil {
			return reviewed{}, err
		}
		if thread != 0 {
			return w.admit(tx, thread, millis(j.now()))
		}
		return w.end(tx)
	})
}

// aside is the condition that an envelope waits for its subject.
const aside = `id = ? AND thread IS NULL AND state = 'pending'`

// admit lets the envelope in. As everywhere, the thread's row is locked first.
func (w waiting) admit(tx Tx, thread, now int64) (reviewed, error) {
	if err := tx.Later(nil, []any{new(int64)}, `SELECT id FROM threads WHERE id = ? FOR UPDATE`, thread); err != nil {
		return reviewed{}, err
	}
	n, err := tx.Exec(`UPDATE envelopes SET thread = ?, not_before = 0 WHERE `+aside, thread, w.id)
	if err != nil || n == 0 {
		return reviewed{}, err
	}
	return reviewed{thread: thread}, addPending(tx, thread, n, now)
}

// end gives the envelope up: it has waited in vain.
func (w waiting) end(tx Tx) (reviewed, error) {
	fate := *event.Ignore(event.ReasonUnknownMessage)
	n, err := tx.Exec(`UPDATE envelopes SET state = 'done', disposition = ?, reason = ? WHERE `+aside,
		string(fate.Disposition), fate.Reason, w.id)
	if err != nil || n == 0 {
		return reviewed{}, err
	}
	return reviewed{ended: &Settled{Envelope: w.id, Workspace: w.workspace, Kind: event.Kind(w.kind), Fate: fate}}, nil
}
