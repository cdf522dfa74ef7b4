package outbox

import (
	"context"
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// NextDelivery returns the thread's first open delivery; nil for none. The removal of a
// sign of work and the changes of state posts come last, so that they delay no answer if they cannot be sent yet. The pieces of
// a refused post, and the notice of it, come where the post was.
func (o *Outbox) NextDelivery(ctx context.Context, thread int64) (*Delivery, error) {
	return storage.ReadOne(ctx, o.db, func(tx *storage.Txn) *Delivery { return OpenDelivery(tx, thread) })
}

// OpenDelivery is NextDelivery inside a transaction.
func OpenDelivery(tx *storage.Txn, thread int64) *Delivery {
	return read(tx, `WHERE d.thread = $1 AND d.state IN ('pending', 'sending') ORDER BY CASE WHEN d.kind IN `+late+` THEN d.due_at ELSE 0 END,
		CASE WHEN d.kind IN ('post', 'tell') AND p.kind <> 'preview' THEN d.replaces ELSE d.id END, d.id LIMIT 1`, thread)
}

// read reads the delivery that the end of a query finds; nil for none.
func read(tx *storage.Txn, find string, args ...any) *Delivery {
	var d, of Delivery
	var file, buttons, card string
	if !tx.Row([]any{&d.ID, &d.Thread, &d.Run, &d.Part, (*string)(&d.ThreadKey), &d.Channel, &d.Parent, &d.Workspace, &d.Key, (*string)(&d.Kind),
		&d.Post.Channel, &d.Post.Place, &d.Post.Text, &d.Post.Asker, &file, &buttons, &card, &d.Stream, (*string)(&d.State), &d.Attempts, &d.PlatformID,
		&d.SendBy, &d.DueAt, &d.Changes, &d.CreatedAt, &d.NotBefore, &d.AskedAt, &of.ID, (*string)(&of.Kind), &of.PlatformID, &of.SendBy}, `
		SELECT d.id, d.thread, d.run, d.part, t.key, t.channel, t.parent, d.workspace, d.key, d.kind, d.channel, d.place, d.payload,
			d.asker, d.file, d.buttons, d.card, d.stream, d.state, d.attempts, d.platform_id, d.send_by, d.due_at, d.changes, d.created_at,
			coalesce((SELECT max(m.sent_at) FROM messages m WHERE m.run = d.run AND m.author IN ('human', 'bot')), d.created_at),
			coalesce((SELECT min(m.created_at) FROM messages m WHERE m.run = d.run AND m.author IN ('human', 'bot')), 0),
			p.id, coalesce(p.kind, ''), p.platform_id, p.send_by
		FROM deliveries d JOIN threads t ON t.id = d.thread LEFT JOIN deliveries p ON p.id = d.replaces `+find, args...) {
		return nil
	}
	tx.Fail(storage.Unpack(file, &d.Post.File))
	tx.Fail(storage.Unpack(buttons, &d.Post.Buttons))
	tx.Fail(storage.Unpack(card, &d.Post.Card))
	if of.ID != 0 {
		d.Replaces = &of
		if d.Kind == KindPost && !d.takesOver() {
			of.PlatformID = "" // its post is none of this one's
		}
	}
	return &d
}

// Send bounds one call, and the pace of calls in a channel.
type Send struct {
	Timeout time.Duration
	// Every is the time between two posts; 0 leaves the pace to the platform.
	Every time.Duration
}

// mine is the condition that a delivery is open and unchanged since its caller read it:
// $1 is its id, $2 the number of its attempts.
const mine = `id = $1 AND attempts = $2 AND ` + open

// update changes a delivery that is open and unchanged since its caller read it.
// Otherwise the transaction fails with ErrDelivered. The arguments of set are $3 and so
// on.
func update(tx *storage.Txn, d *Delivery, set string, args ...any) {
	tx.Must(ErrDelivered, `UPDATE deliveries SET `+set+` WHERE `+mine, append([]any{d.ID, d.Attempts}, args...)...)
}

// BeginSend marks a delivery as sending until SendBy, if the claim holds and its
// channel's pace allows it now. Otherwise it returns the time of the next attempt; the
// delivery keeps its place in the pace until then. No call about the post that the delivery
// takes over may be in progress: a worker that looks again need not wait for one.
func (o *Outbox) BeginSend(ctx context.Context, claim *threads.Claim, d *Delivery, send Send) (Slot, error) {
	return storage.Write(ctx, o.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) Slot {
		threads.Lock(tx, claim)
		every := send.Every
		if !d.Puts() {
			send.Every = 0
		}
		if d.Kind == KindRestate { // it yields to every post, as a preview does
			if again := Spare(tx, d.Workspace, d.Post.Channel, storage.Millis(o.db.Now()), every); !again.IsZero() {
				update(tx, d, `due_at = $3`, storage.Millis(again))
				return Slot{Wait: again}
			}
		}
		at := reserve(tx, d, storage.Millis(o.db.Now()), send)
		now := o.db.Now() // another node may have held the channel's row meanwhile
		if at > storage.Millis(now) {
			update(tx, d, `due_at = $3`, at)
			if d.takesOver() {
				tx.Do(`UPDATE deliveries SET send_by = 0 WHERE id = $1`, d.Replaces.ID)
			}
			return Slot{Wait: storage.Instant(at)}
		}
		if send.Every > 0 {
			leave(tx, d.Workspace, d.Post.Channel, storage.Millis(now), send.Every)
		}
		sendBy := now.Add(send.Timeout)
		d.state(tx)
		update(tx, d, `state = 'sending', attempts = attempts + 1, send_by = $3, due_at = $3, reserved_at = 0, channel = $4, place = $5`,
			storage.Millis(sendBy), d.Post.Channel, d.Post.Place)
		return Slot{SendBy: sendBy}
	})
}

// Address stores the address of a delivery that is marked as sending, before its first call.
func (o *Outbox) Address(ctx context.Context, d *Delivery) error {
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) { update(tx, d, `channel = $3, place = $4`, d.Post.Channel, d.Post.Place) })
}

// IsBusy reports whether a delivery of a thread is open that others wait for.
func (o *Outbox) IsBusy(ctx context.Context, thread int64) (bool, error) {
	return storage.Read(ctx, o.db, func(tx *storage.Txn) bool { return IsOpen(tx, thread) })
}

// Slot is a delivery's place in its channel's pace. One of the two fields is set.
type Slot struct {
	SendBy time.Time // the call may begin, and ends by then
	Wait   time.Time // the delivery may leave then
}

// reserve returns the time at which the delivery may leave: not before its own time, not
// before its place behind the channel's other posts, and not while the platform has asked
// us to wait.
func reserve(tx *storage.Txn, d *Delivery, now int64, send Send) int64 {
	var reserved, dueAt int64
	if !tx.Row([]any{&reserved, &dueAt}, `SELECT reserved_at, CASE WHEN state = 'pending' THEN due_at ELSE 0 END FROM deliveries WHERE `+mine,
		d.ID, d.Attempts) {
		tx.Fail(ErrDelivered)
	}
	switch {
	case dueAt > now:
		return dueAt
	case send.Every <= 0:
		return max(now, blockedUntil(tx, d.Workspace, d.Post.Channel))
	}
	return reservePace(tx, d, now, reserved, send.Every)
}

// Sent ends a delivery: the platform has it under this id. That is a fact, so no claim
// guards it. The delivery takes over the id of a preview that it replaces. A review moves the
// envelopes that wait for a post with that id. Sent returns whether the thread has further open
// deliveries.
func (o *Outbox) Sent(ctx context.Context, d *Delivery, platformID string) (more bool, err error) {
	sent, err := storage.Write(ctx, o.db, storage.WriteOptions{Thread: d.ThreadKey}, func(tx *storage.Txn) *bool {
		if d.takesOver() {
			tx.Do(`UPDATE deliveries SET platform_id = NULL WHERE id = $1`, d.Replaces.ID)
		}
		more := new(bool)
		// PostgreSQL's subquery sees the delivery as it was before the update.
		tx.Later(nil, []any{more}, `UPDATE deliveries SET state = 'sent', platform_id = $2, error = '', due_at = $4 WHERE id = $1
			RETURNING EXISTS (SELECT 1 FROM deliveries o WHERE o.thread = $3 AND o.state IN ('pending', 'sending') AND o.id <> $1)`,
			d.ID, storage.Optional(platformID), d.Thread, storage.Millis(o.db.Now()))
		return more
	})
	return err == nil && *sent, err
}

// Resend makes a delivery that has certainly not taken effect due again at a later time. The text of a state post that may have changed is
// not known any more.
func (o *Outbox) Resend(ctx context.Context, d *Delivery, at time.Time, cause string) error {
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		update(tx, d, `state = 'pending', due_at = $3, error = $4, payload = CASE WHEN kind = 'restate' THEN '' ELSE payload END`, storage.Millis(at), cause)
	})
}

// AwaitReadBack leaves a delivery with an unclear outcome unchanged until its worker can
// ask the platform.
func (o *Outbox) AwaitReadBack(ctx context.Context, d *Delivery, at time.Time, cause string) error {
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) { update(tx, d, `due_at = $3, error = $4`, storage.Millis(at), cause) })
}

// GiveUp ends a delivery that will not be sent: it failed, or is unknown and held. If the
// platform has its post under an id, the id is stored, so that the post is known as ours. After
// a failed part, the rest of its reply is not sent either, and its previews are removed. After a failed file, it is.
func (o *Outbox) GiveUp(ctx context.Context, d *Delivery, state State, cause string) error {
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		d.giveUp(tx, state, cause)
	})
}

// giveUp ends a delivery inside a transaction. A failed file and a failed notice leave the other parts.
func (d *Delivery) giveUp(tx *storage.Txn, state State, cause string) {
	update(tx, d, `state = $3, error = $4, platform_id = coalesce($5, platform_id)`, string(state), cause, storage.Optional(d.PlatformID))
	if state == Failed && d.Kind == KindPost && d.Part >= 0 && d.Post.File == nil {
		const rest = ` WHERE run = $1 AND part >= 0 AND kind = 'post' AND state = 'pending'`
		tx.Do(`UPDATE deliveries SET kind = 'remove'`+rest+` AND replaces IN (SELECT id FROM deliveries WHERE run = $1 AND kind = 'preview')`, d.Run)
		tx.Do(`UPDATE deliveries SET state = 'failed', error = '`+earlierFailed+`'`+rest, d.Run)
	}
}

// earlierFailed is the error of a part that was not sent because an earlier one failed.
const earlierFailed = `an earlier part of this reply failed`

// ResendMarked sends a delivery again whose first sending may have taken effect. The text
// says so, and therefore has a new key: a text never changes under its key.
func (o *Outbox) ResendMarked(ctx context.Context, d *Delivery, text, cause string) error {
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		update(tx, d, `payload = $3, key = $4, state = 'pending', due_at = $5, reserved_at = 0, error = $6`,
			text, Key(d.Key, 1), storage.Millis(o.db.Now()), cause)
	})
}

// Puts reports whether the delivery adds or changes text. Any other one takes no place in its
// channel's pace from them.
func (d *Delivery) Puts() bool {
	return d.Kind == KindPost || d.Kind == KindPreview || d.Kind == KindTell || d.Kind == KindState
}
