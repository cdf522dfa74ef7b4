package envelopes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// ErrSettled means that the envelope is settled already.
var ErrSettled = errors.New("the envelope is settled already")

// Pending is a pending envelope.
type Pending struct {
	ID       int64
	Envelope event.Envelope
	// AcceptedAt is when it became durable; zero if that is not known.
	AcceptedAt time.Time
	Attempts   int64 // reported failures
	Claims     int64 // claims of its thread that ended with their process while it was next
	// MessageUUID is the UUID of the message that it makes.
	MessageUUID string
	Kind        event.Kind
	MessageID   string // external id of the message that it makes or is about
	Dedupe      string
	// Resubmitted is when an operator last resubmitted it, a dead letter; zero for never.
	Resubmitted time.Time
}

// pendingColumns are the columns of envelopes that a Pending has; see dest.
const pendingColumns = `id, workspace, platform, transport, received_at, accepted_at, body, attempts, claims, message_uuid, kind, message_id, dedupe_key, resubmitted_at`

// dest is the scan target for pendingColumns.
func (p *Pending) dest() []any {
	return []any{&p.ID, &p.Envelope.Workspace, (*string)(&p.Envelope.Platform), &p.Envelope.Transport, &p.Envelope.ReceivedAt, &p.AcceptedAt, &p.Envelope.Body,
		&p.Attempts, &p.Claims, &p.MessageUUID, (*string)(&p.Kind), &p.MessageID, &p.Dedupe, &p.Resubmitted}
}

// maxBodies bounds the bodies of a batch of envelopes, in bytes. The last one may exceed it.
const maxBodies = 1 << 20

// NextEnvelopes returns the first due envelopes of a thread, in the order of acceptance.
// It returns none after one that is not due. Their number is bounded by the limit and by
// the size of their bodies.
func (e *Envelopes) NextEnvelopes(ctx context.Context, thread int64, limit int) (batch []Pending, err error) {
	now := e.db.Now()
	err = e.db.Engine.ReadOne(ctx, func(tx storage.Tx) error {
		room := maxBodies
		batch = nil
		return tx.Rows(func(scan func(...any) error) error {
			if room <= 0 {
				return nil
			}
			var p Pending
			var notBefore time.Time
			err := scan(append(p.dest(), &notBefore)...)
			if room -= len(p.Envelope.Body); notBefore.After(now) {
				room = 0
				return err
			}
			batch = append(batch, p)
			return err
		}, `SELECT `+pendingColumns+`, not_before
			FROM envelopes WHERE thread = $1 AND state = 'pending' ORDER BY id LIMIT CAST($2 AS BIGINT)`, thread, int64(limit))
	})
	return batch, err
}

// workedOn is the condition that an envelope is pending in a thread: $1 is its id, $2 the
// thread.
const workedOn = `id = $1 AND thread = $2 AND state = 'pending'`

// Postpone makes an envelope, and so its thread's intake, due again at a later time. A
// failure counts as an attempt; a wait for a known reason does not.
func (e *Envelopes) Postpone(ctx context.Context, claim *threads.Claim, envelope int64, until time.Time, failure error) error {
	words := ""
	if failure != nil {
		words = failure.Error()
	}
	return e.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		threads.PostponeIntake(tx, claim, storage.Millis(until))
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
func (e *Envelopes) CountSuspect(ctx context.Context, claim *threads.Claim, envelope, by int64) error {
	return e.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		tx.Must(ErrSettled, `UPDATE envelopes SET claims = claims + $3 WHERE `+workedOn, envelope, claim.Thread, by)
	})
}

// Bury settles an envelope as a dead letter. Its thread continues.
func (e *Envelopes) Bury(ctx context.Context, claim *threads.Claim, envelope int64, cause error) error {
	return e.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		threads.DropPending(tx, claim, storage.Millis(e.db.Now()))
		tx.Must(ErrSettled, `UPDATE envelopes SET state = 'dead', disposition = 'dead', error = $3 WHERE `+workedOn,
			envelope, claim.Thread, cause.Error())
	})
}

// Result is the stored result of an envelope.
type Result struct {
	event.Result
	Envelope  int64
	Workspace string
	Kind      event.Kind
	Thread    event.ThreadKey
	Message   *messages.Listed
}

// Envelope returns the result of an envelope; nil while it is pending.
func (e *Envelopes) Envelope(ctx context.Context, id int64) (*Result, error) {
	return storage.Read(ctx, e.db, func(tx *storage.Txn) *Result {
		s := Result{Envelope: id}
		var state string
		var message int64
		if !tx.Row([]any{&s.Workspace, (*string)(&s.Kind), (*string)(&s.Disposition), &s.Reason, &s.Error, &state, (*string)(&s.Thread), &message}, `
			SELECT e.workspace, e.kind, e.disposition, e.reason, e.error, e.state, t.key,
				coalesce(e.message, (SELECT m.row FROM messages m WHERE m.workspace = e.workspace AND m.external_id = e.message_id AND m.id = e.message_uuid))
			FROM envelopes e LEFT JOIN threads t ON t.id = e.thread WHERE e.id = $1`, id) || state == "pending" {
			return nil
		}
		s.Message = messages.ByRow(tx, message)
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
// was accepted by the deadline, unless a gap of its channel is open, the message's own
// envelope is pending, or approvers may admit the message. It reports each thread that has work now to moved, and each
// envelope that ended without its message to ended. Several nodes may call it
// concurrently. Each envelope has its own transaction: an error does not undo the work on
// the ones before.
//
// Its cost depends on the number of waiting envelopes. For those that it ends, it also
// reads the pending envelopes once. The plus in its order keeps to the index of waiting
// envelopes.
func (e *Envelopes) ReviewWaiting(ctx context.Context, deadline time.Time, moved func(thread int64), ended func(Result)) error {
	decided, err := storage.List(ctx, e.db, func(w *waiting) []any { return []any{&w.id, &w.workspace, &w.messageID, (*string)(&w.kind)} }, `
		SELECT id, workspace, message_id, kind FROM envelopes e WHERE state = 'pending' AND thread IS NULL AND (
			EXISTS (`+target+`)
			OR EXISTS (SELECT 1 FROM deliveries d WHERE d.workspace = e.workspace AND d.platform_id = e.message_id)
			OR accepted_at <= $1 AND NOT EXISTS (SELECT 1 FROM gaps g WHERE g.workspace = e.workspace AND g.channel = e.channel)
				AND (workspace, message_id) NOT IN (SELECT workspace, message_id FROM envelopes WHERE state = 'pending' AND thread IS NOT NULL)
				AND NOT `+retaken+`)
			ORDER BY +id LIMIT CAST($2 AS BIGINT)`, storage.Millis(deadline), int64(reviewBatch))
	for _, w := range decided {
		w, err := e.review(ctx, w)
		switch {
		case err != nil:
			return err
		case w.changed && w.thread != 0:
			moved(w.thread)
		case w.changed:
			ended(Result{Envelope: w.id, Workspace: w.workspace, Kind: w.kind, Result: *event.Ignore(event.ReasonUnknownMessage)})
		}
	}
	return err
}

// review moves one envelope to its target's thread, or ends it if there is none. It
// changes nothing if another node has done so.
func (e *Envelopes) review(ctx context.Context, w waiting) (waiting, error) {
	const still = ` WHERE id = $1 AND thread IS NULL AND state = 'pending'`
	return storage.Write(ctx, e.db, storage.WriteOptions{}, func(tx *storage.Txn) waiting {
		if w.thread, _ = messageThread(tx, w.workspace, w.messageID); w.thread == 0 {
			w.changed = tx.Exec(`UPDATE envelopes SET state = 'done', disposition = 'ignored', reason = $2, body = substr(body, 1, 0)`+still, w.id, event.ReasonUnknownMessage) > 0
			return w
		}
		tx.Later(nil, []any{new(int64)}, `SELECT id FROM threads WHERE id = $1 FOR UPDATE`, w.thread) // first, as in every transaction
		if w.changed = tx.Exec(`UPDATE envelopes SET thread = $2, not_before = 0`+still, w.id, w.thread) > 0; w.changed {
			threads.AddPending(tx, w.thread, 1, storage.Millis(e.db.Now()))
		}
		return w
	})
}

// EmptyBody empties the body of an envelope.
func EmptyBody(tx *storage.Txn, envelope int64) {
	tx.Do(`UPDATE envelopes SET body = $2 WHERE id = $1`, envelope, []byte{})
}

// EmptyBodies empties the bodies that contain words of a message.
func EmptyBodies(tx *storage.Txn, m *messages.Message) {
	for id := range strings.FieldsFuncSeq(m.Envelopes, func(c rune) bool { return c == ',' }) {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			tx.Fail(fmt.Errorf("message %d: envelopes: %w", m.Row, err))
		}
		EmptyBody(tx, n)
	}
}

// EmptyDead empties the bodies of dead letters about a message, and of envelopes that Again could take up, by one of the message's ids.
func EmptyDead(tx *storage.Txn, workspace, externalID, platformID string) {
	tx.Do(`UPDATE envelopes SET body = substr(body, 1, 0) WHERE disposition IN ('ignored', 'dead') AND (state = 'dead' OR reason = $4)
		AND workspace = $1 AND message_id IN ($2, $3)`, workspace, externalID, platformID, event.ReasonStrangerAsked)
}

// FreeKey lets a later payload have the dedupe key of an envelope.
func FreeKey(tx *storage.Txn, envelope int64) {
	tx.Do(`UPDATE envelopes SET dedupe_key = 'limit:' || CAST(id AS TEXT) WHERE id = $1`, envelope)
}

// AdmitWaiting moves the envelopes that wait for a message into its thread, and returns their number.
func AdmitWaiting(tx *storage.Txn, workspace, messageID string, thread int64) int64 {
	return tx.Exec(`UPDATE envelopes SET thread = $3, not_before = 0 WHERE workspace = $1 AND message_id = $2 AND state = 'pending' AND thread IS NULL`, workspace, messageID, thread)
}

// AdmitMissed moves the envelopes that wait for any message of a thread into it; see threads.Turn.
func AdmitMissed(tx *storage.Txn, thread int64, workspace string, now int64) {
	n := tx.Exec(`UPDATE envelopes AS e SET thread = $1, not_before = 0 WHERE e.workspace = $2 AND e.state = 'pending' AND e.thread IS NULL
		AND EXISTS (`+target+` AND m.thread = $1)`, thread, workspace)
	threads.AddPending(tx, thread, n, now)
}

// MoveTo moves an envelope from its thread to another one. The transaction fails with ErrSettled if it is
// settled.
func MoveTo(tx *storage.Txn, envelope, thread, to, now int64) {
	tx.Must(ErrSettled, `UPDATE envelopes SET thread = $3 WHERE `+workedOn, envelope, thread, to)
	threads.AddPending(tx, to, 1, now)
}

// LetWait takes an envelope out of its thread, so that it waits for its message. It returns false if the
// envelope has waited for WaitLimit.
func LetWait(tx *storage.Txn, envelope, thread int64, channel string, now int64) bool {
	return tx.Exec(`UPDATE envelopes AS e SET thread = NULL, channel = $3 WHERE id = $1 AND thread = $2 AND state = 'pending'
		AND (accepted_at > $4 OR EXISTS (SELECT 1 FROM gaps WHERE gaps.workspace = e.workspace AND gaps.channel = $3) OR `+retaken+`)`,
		envelope, thread, channel, now-WaitLimit.Milliseconds()) > 0
}

// Settle ends an envelope. message is the row that it made or changed; null for none. If none is not
// nil and the envelope is not pending in the thread, the transaction fails with none.
func Settle(tx *storage.Txn, none error, envelope, thread int64, result event.Result, message any) {
	tx.Must(none, `UPDATE envelopes SET state = 'done', disposition = $3, reason = $4, error = '', message = $5 WHERE `+workedOn,
		envelope, thread, string(result.Disposition), result.Reason, message)
}

// CorrectDue makes envelopes due now that are due later than a time, because the clock led.
func CorrectDue(tx *storage.Txn, now, late int64) {
	tx.Do(`UPDATE envelopes SET not_before = $1 WHERE state = 'pending' AND thread IS NOT NULL AND not_before > $2`, now, late)
}

// CountClaim counts a claim of a thread whose owner ended without a release, in the thread's first pending envelope, which may be the
// cause. A postponed one is not, and of a suspect only its own worker counts.
func CountClaim(tx *storage.Txn, thread, now int64) {
	tx.Do(`UPDATE envelopes SET claims = claims + 1 WHERE id = (
		SELECT id FROM envelopes WHERE thread = $1 AND state = 'pending' ORDER BY id LIMIT 1) AND not_before <= $2 AND claims < $3`,
		thread, now, int64(SuspectClaims))
}
