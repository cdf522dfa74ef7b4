package journal

import (
	"context"
	"time"

	"parley/ingest/event"
)

// Delivery is one call that puts a piece of a reply on a platform.
type Delivery struct {
	ID        int64
	Thread    int64
	ThreadKey event.ThreadKey
	Workspace string
	Platform  event.Platform
	Run       int64 // the row of the run whose words it carries
	Key       string
	Kind      DeliveryKind
	Post      Post
	State     DeliveryState
	Attempts  int64
	// Replaces is the preview whose post it takes over or takes away; nil for none.
	Replaces *Preview
	// Stream says of a preview that it was begun as a stream.
	Stream bool
	// SendBy ends the call that was last begun.
	SendBy    time.Time
	NotBefore time.Time
	CreatedAt time.Time
	// Awaited says that envelopes waited for the post, which were let in once it was sent.
	Awaited bool
}

// DeliveryKind says what a delivery does.
type DeliveryKind string

// The kinds of deliveries.
const (
	DeliveryPost    DeliveryKind = "post"    // puts a piece of a reply there, in the place of a preview where it replaces one
	DeliveryPreview DeliveryKind = "preview" // puts there the beginning of a reply that still grows
	DeliveryRemove  DeliveryKind = "remove"  // takes a preview's post away
	DeliveryTell    DeliveryKind = "tell"    // shows the asker alone a text
	DeliveryUnsign  DeliveryKind = "unsign"  // takes the sign of work away from the message that its text names
)

// DeliveryState is how far a delivery has come.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending DeliveryState = "pending"
	DeliverySending DeliveryState = "sending"
	DeliverySent    DeliveryState = "sent"
	DeliveryUnknown DeliveryState = "unknown"
	DeliveryFailed  DeliveryState = "failed"
)

// NextDelivery returns the thread's first delivery that is not at its end; nil
// where there is none. That a sign of work can't be taken away yet keeps no answer from
// being posted.
func (j *Journal) NextDelivery(ctx context.Context, thread int64) (d *Delivery, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) (err error) {
		d, err = openDelivery(tx, thread)
		return err
	})
	return d, err
}

func openDelivery(tx Tx, thread int64) (*Delivery, error) {
	d := Delivery{Thread: thread}
	var key, platform, kind, state, file string
	var sendBy, notBefore, createdAt int64
	var of previewRow
	found, err := tx.Row(append([]any{&d.ID, &d.Run, &key, &platform, &d.Workspace, &d.Key, &kind, &d.Post.Channel, &d.Post.Root, &d.Post.Text,
		&d.Post.Asker, &file, &d.Stream, &state, &d.Attempts, &sendBy, &notBefore, &createdAt}, of.dest()...), `
		SELECT d.id, d.run, t.key, t.platform, d.workspace, d.key, d.kind, d.channel, d.root, d.payload,
			d.asker, d.file, d.stream, d.state, d.attempts, d.send_by, d.not_before, d.created_at,
			coalesce(p.id, 0), coalesce(p.state, ''), coalesce(p.platform_id, ''), coalesce(p.stream, 0), coalesce(p.send_by, 0)
		FROM deliveries d JOIN threads t ON t.id = d.thread LEFT JOIN deliveries p ON p.id = d.replaces
		WHERE d.thread = ? AND d.state IN ('pending', 'sending') ORDER BY CASE WHEN d.kind = 'unsign' THEN 1 ELSE 0 END, d.id LIMIT 1`, thread)
	if err != nil || !found {
		return nil, err
	}
	d.ThreadKey, d.Platform, d.Kind, d.State = event.ThreadKey(key), event.Platform(platform), DeliveryKind(kind), DeliveryState(state)
	d.SendBy, d.NotBefore, d.CreatedAt, d.Replaces = instant(sendBy), instant(notBefore), instant(createdAt), of.preview()
	return &d, unpack(file, &d.Post.File)
}

// Send bounds one call, and how fast calls may follow one another in a channel.
type Send struct {
	Timeout time.Duration
	// Every is the time between two posts; 0 leaves the pace to the platform.
	Every time.Duration
}

// underWay is the condition that a delivery has not come to its end.
const underWay = `id = ? AND state IN ('pending', 'sending')`

// BeginSend marks a delivery as being sent until sendBy, if its channel's pace
// allows that now. Else it returns when to come again, and the place in the
// pace is kept until then.
func (j *Journal) BeginSend(ctx context.Context, lease *Lease, d *Delivery, send Send) (Slot, error) {
	return write(about(ctx, lease.Key), j, func(tx Tx) (Slot, error) {
		if err := checkFence(tx, lease); err != nil {
			return Slot{}, err
		}
		if !d.paced() {
			send.Every = 0
		}
		at, err := reserve(tx, d, millis(j.now()), send)
		if err != nil {
			return Slot{}, err
		}
		now := j.now() // others may have had the channel's row meanwhile
		if at > millis(now) {
			return Slot{Wait: instant(at)}, deliverAt(tx, lease, at)
		}
		if send.Every > 0 {
			if err := leave(tx, d, millis(now), send.Every); err != nil {
				return Slot{}, err
			}
		}
		sendBy := now.Add(send.Timeout)
		return Slot{SendBy: sendBy}, tx.Later(nil, nil, `UPDATE deliveries SET state = 'sending', attempts = attempts + 1, send_by = ?, reserved_at = 0
			WHERE id = ?`, millis(sendBy), d.ID)
	})
}

// beginAtOnce marks a delivery that is about to be stored as being sent, if
// nothing holds its channel up.
func (d *Delivery) beginAtOnce(send Send, blocked, now int64) {
	if send.Every > 0 || blocked > now {
		return // its place in the pace is taken when it is sent
	}
	d.State, d.Attempts, d.SendBy = DeliverySending, 1, instant(now).Add(send.Timeout)
}

// Slot is a delivery's place in its channel's pace. One of the two is set.
type Slot struct {
	SendBy time.Time // the call may begin, and ends by then
	Wait   time.Time // the delivery may leave then
}

// checkFence keeps the thread as it is for the rest of the transaction, which
// fails where the lease does not hold any more.
func checkFence(tx Tx, lease *Lease) error { return lock(tx, lease, []any{new(int64)}, `id`) }

// deliverAt makes the thread's deliveries due at a time, if the lease still holds.
func deliverAt(tx Tx, lease *Lease, at int64) error {
	return tx.Later(ErrFenced, nil, `UPDATE threads SET deliver_at = ? WHERE id = ? AND fence = ?`, at, lease.Thread, lease.Fence)
}

// reserve finds when the delivery may leave: not before its own time, in its
// turn behind the channel's other posts, and not while the platform has asked us
// to wait.
func reserve(tx Tx, d *Delivery, now int64, send Send) (int64, error) {
	var notBefore, reserved int64
	open, err := tx.Row([]any{&notBefore, &reserved}, `SELECT not_before, reserved_at FROM deliveries WHERE `+underWay, d.ID)
	if err == nil && !open {
		return 0, ErrDelivered
	}
	if err != nil || notBefore > now {
		return notBefore, err
	}
	if send.Every <= 0 {
		blocked, err := blockedUntil(tx, d)
		return max(now, blocked), err
	}
	return reservePace(tx, d, now, reserved, send.Every)
}

// Sent ends a delivery: the platform has it under this id. What waited for a
// post with that id is let in. It reports whether more is to be delivered.
func (j *Journal) Sent(ctx context.Context, lease *Lease, d *Delivery, platformID string) (more bool, err error) {
	var next int64
	var awaited bool
	err = j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		next, awaited = 0, false
		// The thread is locked before its deliveries are looked at; that the lease
		// holds, the last statement checks. What names no subject must not find one.
		if err := tx.Later(nil, []any{&awaited}, `SELECT CASE WHEN ? <> '' AND EXISTS (SELECT 1 FROM envelopes`+awaiting+`) THEN 1 ELSE 0 END
			FROM threads WHERE id = ? AND fence = ? FOR UPDATE`, platformID, d.Workspace, platformID, lease.Thread, lease.Fence); err != nil {
			return err
		}
		if err := d.takeOver(tx); err != nil {
			return err
		}
		if err := tx.Later(nil, nil, `UPDATE deliveries SET state = 'sent', platform_id = ?, error = '' WHERE id = ?`,
			optional(platformID), d.ID); err != nil {
			return err
		}
		return nextDelivery(tx, lease, millis(j.now()), &next)
	})
	if err == nil && awaited {
		d.Awaited = true
		err = j.admitPosted(ctx, d, platformID)
	}
	return next != 0, err
}

// admitPosted lets in what was waiting for a post of ours. Where it fails, a review
// does it.
func (j *Journal) admitPosted(ctx context.Context, d *Delivery, platformID string) error {
	return j.engine.Write(ctx, func(tx Tx) error {
		var id int64
		if _, err := tx.Row([]any{&id}, `SELECT id FROM threads WHERE id = ? FOR UPDATE`, d.Thread); err != nil {
			return err
		}
		admitted, err := admitWaiting(tx, d.Workspace, platformID, d.Thread)
		if err != nil || admitted == 0 {
			return err
		}
		return addPending(tx, d.Thread, admitted, millis(j.now()))
	})
}

// nextDelivery makes the thread's next delivery due, if there is one and the lease
// still holds. at is 0 where there is none, once the transaction has ended.
func nextDelivery(tx Tx, lease *Lease, now int64, at *int64) error {
	return tx.Later(ErrFenced, []any{at}, `UPDATE threads SET deliver_at = (
			SELECT CAST(? AS BIGINT) FROM deliveries WHERE thread = threads.id AND state IN ('pending', 'sending') LIMIT 1)
		WHERE id = ? AND fence = ? RETURNING coalesce(deliver_at, 0)`, now, lease.Thread, lease.Fence)
}

// Resend gives a delivery that has certainly not taken effect another try at a
// later time. Where the platform asked for it, its whole channel waits.
func (j *Journal) Resend(ctx context.Context, lease *Lease, d *Delivery, at time.Time, cause string, channelWaits bool) error {
	return j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		if err := deliverAt(tx, lease, millis(at)); err != nil {
			return err
		}
		if channelWaits {
			if err := block(tx, d, millis(at)); err != nil {
				return err
			}
		}
		return tx.Later(ErrDelivered, nil, `UPDATE deliveries SET state = 'pending', not_before = ?, error = ? WHERE `+underWay,
			millis(at), cause, d.ID)
	})
}

// AwaitReadBack leaves a delivery whose outcome is not clear as it is, until
// the platform can be asked.
func (j *Journal) AwaitReadBack(ctx context.Context, lease *Lease, d *Delivery, at time.Time, cause string) error {
	return j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		if err := deliverAt(tx, lease, millis(at)); err != nil {
			return err
		}
		return tx.Later(ErrDelivered, nil, `UPDATE deliveries SET error = ? WHERE `+underWay, cause, d.ID)
	})
}

// GiveUp ends a delivery that will not be sent: failed, or unknown and held.
// After a failed part the rest of its reply is not sent either, and what was shown
// of it is taken away.
func (j *Journal) GiveUp(ctx context.Context, lease *Lease, d *Delivery, state DeliveryState, cause string) (more bool, err error) {
	var next int64
	err = j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		next = 0
		if err := checkFence(tx, lease); err != nil {
			return err
		}
		if err := tx.Later(ErrDelivered, nil, `UPDATE deliveries SET state = ?, error = ? WHERE `+underWay, string(state), cause, d.ID); err != nil {
			return err
		}
		if state == DeliveryFailed && d.Kind == DeliveryPost {
			if err := d.giveUpRest(tx); err != nil {
				return err
			}
		}
		return nextDelivery(tx, lease, millis(j.now()), &next)
	})
	return next != 0, err
}

// ResendMarked sends a delivery again whose first sending may have taken effect,
// with a text that says so, and so under a new key: a text never changes under
// its key.
func (j *Journal) ResendMarked(ctx context.Context, lease *Lease, d *Delivery, text, cause string) error {
	return j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		if err := checkFence(tx, lease); err != nil {
			return err
		}
		if err := tx.Later(nil, nil, `UPDATE deliveries SET payload = ?, key = ?, state = 'pending', not_before = 0, reserved_at = 0, error = ? WHERE id = ?`,
			text, DeliveryKey(d.Key, 1), cause, d.ID); err != nil {
			return err
		}
		return nextDelivery(tx, lease, millis(j.now()), new(int64))
	})
}
