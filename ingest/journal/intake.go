package journal

import (
	"context"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/places"
	"parley/ingest/journal/storage"
)

// Pending is a pending envelope.
type Pending struct {
	ID       int64
	Envelope event.Envelope
	Attempts int64 // reported failures
	Claims   int64 // claims of its thread that ended with their process while it was next
	// MessageUUID is the UUID of the message that it makes.
	MessageUUID string
	Kind        event.Kind
}

// maxBodies bounds the bodies of a batch of envelopes, in bytes. The last one may exceed it.
const maxBodies = 1 << 20

// NextEnvelopes returns the first due envelopes of a thread, in the order of acceptance.
// It returns none after one that is not due. Their number is bounded by the limit and by
// the size of their bodies.
func (j *Journal) NextEnvelopes(ctx context.Context, thread int64, limit int) (batch []Pending, err error) {
	now := j.db.Now()
	err = j.db.Engine.ReadOne(ctx, func(tx storage.Tx) error {
		room := maxBodies
		batch = nil
		return tx.Rows(func(scan func(...any) error) error {
			if room <= 0 {
				return nil
			}
			var p Pending
			var notBefore time.Time
			err := scan(&p.ID, &p.Envelope.Workspace, (*string)(&p.Envelope.Platform), &p.Envelope.Transport, &p.Envelope.ReceivedAt, &p.Envelope.Body,
				&p.Attempts, &p.Claims, &p.MessageUUID, (*string)(&p.Kind), &notBefore)
			if room -= len(p.Envelope.Body); notBefore.After(now) {
				room = 0
				return err
			}
			batch = append(batch, p)
			return err
		}, `SELECT id, workspace, platform, transport, received_at, body, attempts, claims, message_uuid, kind, not_before
			FROM envelopes WHERE thread = $1 AND state = 'pending' ORDER BY id LIMIT CAST($2 AS BIGINT)`, thread, int64(limit))
	})
	return batch, err
}

// workedOn is the condition that an envelope is pending in a thread: $1 is its id, $2 the
// thread.
const workedOn = `id = $1 AND thread = $2 AND state = 'pending'`

// Postpone makes an envelope, and so its thread's intake, due again at a later time. A
// failure counts as an attempt; a wait for a known reason does not.
func (j *Journal) Postpone(ctx context.Context, claim *places.Claim, envelope int64, until time.Time, failure error) error {
	words := ""
	if failure != nil {
		words = failure.Error()
	}
	return j.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		tx.Must(storage.ErrFenced, `UPDATE threads SET intake_at = $3 WHERE id = $1 AND fence = $2`, claim.Thread, claim.Fence, storage.Millis(until))
		tx.Must(ErrSettled, `UPDATE envelopes SET not_before = $3, attempts = attempts + $4, error = $5 WHERE `+workedOn,
			envelope, claim.Thread, storage.Millis(until), storage.Number(failure != nil), words)
	})
}

const (
	// SuspectClaims is the number of claims that ended with their process after which an envelope
	// or a run is a suspect.
	SuspectClaims = 3
	// DeadClaims is the number after which it is given up: the process ended during two attempts
	// at the suspect.
	DeadClaims = SuspectClaims + 2
)

// CountSuspect counts an attempt at a suspect before it begins, or takes the count back after
// an attempt during which the process did not end.
func (j *Journal) CountSuspect(ctx context.Context, claim *places.Claim, envelope, by int64) error {
	return j.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		tx.Must(ErrSettled, `UPDATE envelopes SET claims = claims + $3 WHERE `+workedOn, envelope, claim.Thread, by)
	})
}

// Bury settles an envelope as a dead letter. Its thread continues.
func (j *Journal) Bury(ctx context.Context, claim *places.Claim, envelope int64, cause error) error {
	return j.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		tx.Must(storage.ErrFenced, `UPDATE threads SET pending = pending - 1, intake_at = CASE WHEN pending > 1 THEN CAST($3 AS BIGINT) END
			WHERE id = $1 AND fence = $2`, claim.Thread, claim.Fence, storage.Millis(j.db.Now()))
		tx.Must(ErrSettled, `UPDATE envelopes SET state = 'dead', disposition = 'dead', error = $3 WHERE `+workedOn,
			envelope, claim.Thread, cause.Error())
	})
}

// EnvelopeResult is the stored result of an envelope.
type EnvelopeResult struct {
	event.Result
	Envelope  int64
	Workspace string
	Kind      event.Kind
	Thread    event.ThreadKey
	Message   *Listed
}

// Envelope returns the result of an envelope; nil while it is pending.
func (j *Journal) Envelope(ctx context.Context, id int64) (*EnvelopeResult, error) {
	return storage.Read(ctx, j.db, func(tx *storage.Txn) *EnvelopeResult {
		s := EnvelopeResult{Envelope: id}
		var state string
		var message int64
		if !tx.Row([]any{&s.Workspace, (*string)(&s.Kind), (*string)(&s.Disposition), &s.Reason, &s.Error, &state, (*string)(&s.Thread), &message}, `
			SELECT e.workspace, e.kind, e.disposition, e.reason, e.error, e.state, t.key, e.message
			FROM envelopes e LEFT JOIN threads t ON t.id = e.thread WHERE e.id = $1`, id) || state == "pending" {
			return nil
		}
		if found := listed(tx, `m.row = $1`, message); len(found) > 0 {
			s.Message = &found[0]
		}
		return &s
	})
}

// WaitLimit is how long an envelope waits for its message, if no gap of its channel
// is open.
const WaitLimit = time.Minute

// reviewBatch bounds the envelopes that one review considers.
const reviewBatch = 500

// waiting is an envelope that waits for its message.
type waiting struct {
	id                   int64
	workspace, messageID string
	kind                 event.Kind
	// The result of its review: the thread to which it was moved, 0 for none, and whether
	// this node changed it.
	thread  int64
	changed bool
}

// ReviewWaiting looks again for the messages that envelopes wait for. It moves an
// envelope whose message or post is recorded by now into that thread, and ends one that
// was accepted by the deadline, unless a gap of its channel is open or the message's own
// envelope is pending. It reports each thread that has work now to moved, and each
// envelope that ended without its message to ended. Several nodes may call it
// concurrently. Each envelope has its own transaction: an error does not undo the work on
// the ones before.
//
// Its cost depends on the number of waiting envelopes. For those that it ends, it also
// reads the pending envelopes once. The plus in its order keeps to the index of waiting
// envelopes.
func (j *Journal) ReviewWaiting(ctx context.Context, deadline time.Time, moved func(thread int64), ended func(EnvelopeResult)) error {
	decided, err := storage.List(ctx, j.db, func(w *waiting) []any { return []any{&w.id, &w.workspace, &w.messageID, (*string)(&w.kind)} }, `
		SELECT id, workspace, message_id, kind FROM envelopes e WHERE state = 'pending' AND thread IS NULL AND (
			EXISTS (`+target+`)
			OR EXISTS (SELECT 1 FROM deliveries d WHERE d.workspace = e.workspace AND d.platform_id = e.message_id)
			OR accepted_at <= $1 AND NOT EXISTS (SELECT 1 FROM gaps g WHERE g.workspace = e.workspace AND g.channel = e.channel)
				AND (workspace, message_id) NOT IN (SELECT workspace, message_id FROM envelopes WHERE state = 'pending' AND thread IS NOT NULL))
			ORDER BY +id LIMIT CAST($2 AS BIGINT)`, storage.Millis(deadline), int64(reviewBatch))
	for _, w := range decided {
		w, err := j.review(ctx, w)
		switch {
		case err != nil:
			return err
		case w.changed && w.thread != 0:
			moved(w.thread)
		case w.changed:
			ended(EnvelopeResult{Envelope: w.id, Workspace: w.workspace, Kind: w.kind, Result: *event.Ignore(event.ReasonUnknownMessage)})
		}
	}
	return err
}

// review moves one envelope to its target's thread, or ends it if there is none. It
// changes nothing if another node has done so.
func (j *Journal) review(ctx context.Context, w waiting) (waiting, error) {
	const still = ` WHERE id = $1 AND thread IS NULL AND state = 'pending'`
	return storage.Write(ctx, j.db, storage.WriteOptions{}, func(tx *storage.Txn) waiting {
		if w.thread, _ = messageThread(tx, w.workspace, w.messageID); w.thread == 0 {
			w.changed = tx.Exec(`UPDATE envelopes SET state = 'done', disposition = 'ignored', reason = $2, body = substr(body, 1, 0)`+still, w.id, event.ReasonUnknownMessage) > 0
			return w
		}
		tx.Later(nil, []any{new(int64)}, `SELECT id FROM threads WHERE id = $1 FOR UPDATE`, w.thread) // first, as in every transaction
		if w.changed = tx.Exec(`UPDATE envelopes SET thread = $2, not_before = 0`+still, w.id, w.thread) > 0; w.changed {
			addPending(tx, w.thread, 1, storage.Millis(j.db.Now()))
		}
		return w
	})
}
