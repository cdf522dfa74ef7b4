package listing

import (
	"context"
	"math"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// LetterState is the state of an envelope that is, or was, a dead letter.
type LetterState string

// The states of dead letters.
const (
	LetterDead        LetterState = "dead"
	LetterResubmitted LetterState = "retried"   // an operator has resubmitted it, and it has no result yet
	LetterSettled     LetterState = "settled"   // it was resubmitted and has its result
	LetterDiscarded   LetterState = "discarded" // an operator has given it up
)

// DeadLetter is an envelope that is, or was, a dead letter.
type DeadLetter struct {
	ID        int64
	Workspace string
	Platform  event.Platform
	Transport string
	Kind      event.Kind
	Thread    event.ThreadKey // empty: its keys could not be read
	MessageID string          // external id of the message that it makes or is about; empty if unknown
	// Key is the dedupe key, which contains the platform's id of the event if it has one.
	Key string
	// ReceivedAt is zero if the arrival is unknown. ResubmittedAt is zero if nobody resubmitted it.
	ReceivedAt, AcceptedAt, ResubmittedAt time.Time

	State LetterState
	event.Result
	Private bool // it is of no known room: a direct message, a small group, or unknown
}

const (
	letterColumns = `e.id, e.workspace, e.platform, e.transport, e.kind, coalesce(t.key, ''), e.message_id, e.dedupe_key, e.received_at, e.accepted_at,
		e.resubmitted_at, e.disposition, e.reason, e.error, CASE WHEN e.state = 'dead' THEN 'dead' WHEN e.state = 'pending' THEN 'retried'
		WHEN e.disposition = 'dead' THEN 'discarded' ELSE 'settled' END,
		NOT EXISTS (SELECT 1 FROM channels c WHERE c.workspace = e.workspace AND c.id = coalesce(t.channel, e.channel) AND c.type = 'room')`
	letters = ` FROM envelopes e LEFT JOIN threads t ON t.id = e.thread `
)

// dest is the scan target for letterColumns.
func (l *DeadLetter) dest() []any {
	return []any{&l.ID, &l.Workspace, (*string)(&l.Platform), &l.Transport, (*string)(&l.Kind), (*string)(&l.Thread), &l.MessageID, &l.Key, &l.ReceivedAt, &l.AcceptedAt,
		&l.ResubmittedAt, (*string)(&l.Disposition), &l.Reason, &l.Error, (*string)(&l.State), &l.Private}
}

// DeadLetters returns the dead letters before an id, the newest first; 0 for the newest ones.
func (l *Listing) DeadLetters(ctx context.Context, before int64, limit int) ([]DeadLetter, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return storage.List(ctx, l.db, (*DeadLetter).dest, `SELECT `+letterColumns+letters+
		`WHERE e.state = 'dead' AND e.id < $1 ORDER BY e.id DESC LIMIT CAST($2 AS BIGINT)`, before, int64(limit))
}

// DeadLetter returns an envelope that is, or was, a dead letter. It fails with ErrNotFound if there is none with
// the id.
func (l *Listing) DeadLetter(ctx context.Context, id int64) (d DeadLetter, err error) {
	err = l.db.One(ctx, d.dest(), `SELECT `+letterColumns+letters+
		`WHERE e.id = $1 AND (e.state = 'dead' OR e.resubmitted_at > 0 OR e.disposition = 'dead')`, id)
	return d, err
}
